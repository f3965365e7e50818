-- gate: how much at once. What a partition may let through, and how much of that is used.
-- GIVES   gateOf(share, used, now, micros): share and used as K:meta has them in gates and gate;
--         nothing where the queue is not gated. {interval us, burst, concurrency, perGroup, 0 =
--         without such a limit, arrival us, clocks by priority, now, micros}; isShut: nothing is
--         let through, while the limits are being set and until closed; groupInterval and
--         groupBurst, the rate of each group; lengths, of the names and beginnings that have limits
--         of their own, - = there are none; hasOwn: own has to be asked for each group; isStrict:
--         who was let through has its group until it is over, holdsDead: or as long as it is a dead
--         letter; lettersIn(share): s = strict, sh = and dead letters hold groups, or nothing;
--         hasCosts: a job may cost more than one turn; debt: so many turns it may owe;
--         needsMark(share): older processes do not know all of it; names, with commas between:
--         limits that other queues have as well, see the part lent; second: of two rates the slower
--         one. Of one rate, and of that of a group: turnsIn(gate): so many it allows now, below 0
--         where some are owed; nextLookMs(gate): when it allows one more than now; aheadBy(gate,
--         ahead, before): how far the arrival is ahead, in us, where it was so far at an interval
--         of before; placeFrom(gate, micros): where it has places of its own, the first one from
--         then on, else then; gateText(gate): what gate of K:meta keeps. Of all rates: see the
--         part rates
-- RULE    The rate is a GCRA: arrival is when the turns that were used would have been through at
--         the rate. It may be ahead of now by what a burst and 50 ms of delay allow, and by one
--         turn more. What is ahead by more, after a step of the clock, is cut to where one turn is
--         free: whoever takes it writes the cut. Turns are used before the first entry is added, so
--         that a call that is cut off has used too many, never too few. Where a queue has more
--         partitions than a burst, each has places in time that are its own: of each interval
--         one, at its part of it. The arrival is such a place, and a turn may be used up to a burst
--         and half of the time from one place to the next, of any partition, before it. So no two
--         partitions start at once after a while without starts. Where jobs cost more than one
--         turn, a rate may owe any number of them, and nothing is cut, see the part rates.
local function lettersIn(share)
  return (share .. ' '):match(' (sh?) ')
end

local function hasCostsIn(share)
  return (share .. ' '):find(' c ', 1, true) ~= nil
end

local function needsMark(share)
  return lettersIn(share) ~= nil or share:find(' r%d') ~= nil or share:find(' l%w') ~= nil
    or hasCostsIn(share)
end

local function takePlaces(rate, text)
  local nth, of, whole = text:match('(%d+)/(%d+)/(%d+)')
  if not nth then return end
  local apart = rate.interval / of
  rate.phase, rate.tolerance = nth * apart, 50000 + (whole - 0.5) * apart
end

local function secondOf(gate, interval, burst, places)
  local second = { interval = tonumber(interval), burst = tonumber(burst) }
  second.micros, second.debt = gate.micros, gate.debt
  takePlaces(second, places)
  return second
end

local function gateOf(share, used, now, micros)
  -- The share is written by `gateShare` of src/job/gate.ts, and `readShare` beside it reads it too.
  if not share then return nil end
  local interval, burst, concurrency, perGroup, more =
    share:match('^([%d.]+) (%d+) (%d+) (%d+)(.*)$')
  local arrival, high, normal, low, shut = (used or ''):match('^([%d.]+) (%d+) (%d+) (%d+) (.*)$')
  local queueClosed, groupsClosed = (shut or ''):match('^(%d+) (%d+)$')
  local gate = { interval = tonumber(interval or 0), now = now, own = {} }
  gate.burst, gate.concurrency = tonumber(burst or 1), tonumber(concurrency or 0)
  gate.perGroup, gate.arrival = tonumber(perGroup or 0), tonumber(arrival or 0)
  gate.clocks = { tonumber(high or 0), tonumber(normal or 0), tonumber(low or 0) }
  gate.micros = micros or now * 1000
  gate.queueClosed, gate.groupsClosed = tonumber(queueClosed or 0), tonumber(groupsClosed or 0)
  gate.isShut = not interval or gate.queueClosed > now
  local letters = lettersIn(share)
  gate.isStrict, gate.holdsDead = letters, letters == 'sh'
  gate.hasCosts = hasCostsIn(share)
  gate.debt = gate.hasCosts and math.huge or 1
  local pace, most, lengths = (more or ''):match('^ ([%d.]+) (%d+) ([%d,-]+) ')
  gate.groupInterval, gate.groupBurst = tonumber(pace or 0), tonumber(most or 1)
  -- @has-own
  gate.lengths, gate.hasOwn = lengths or '-', lengths or gate.groupsClosed > now
  gate.names = ((more or '') .. ' '):match(' l(%S+) ')
  takePlaces(gate, (more or ''):match(' s(%d+/%d+/%d+)') or '')
  local slower, most2, places = (more or ''):match(' r([%d.]+),(%d+)(%S*)')
  if slower then
    --@lazy
    gate.second = secondOf(gate, slower, most2, places)
  end
  return gate
end

local function toleranceOf(gate)
  return gate.tolerance or (gate.burst - 1) * gate.interval + 50000
end

local function placeFrom(gate, micros)
  if not gate.phase then return micros end
  local nth = math.ceil((micros - 1 - gate.phase) / gate.interval)
  return gate.phase + nth * gate.interval
end

local function turnsIn(gate)
  -- @without-rate
  if gate.interval == 0 then return math.huge end
  local latest = gate.micros + toleranceOf(gate)
  -- A microsecond is for what is lost in the sum of large numbers.
  -- @too-far-ahead
  if gate.arrival > latest + gate.debt * gate.interval + 1 then
    gate.arrival = latest
  end
  gate.arrival = placeFrom(gate, math.max(gate.arrival, gate.micros))
  return math.floor((latest - gate.arrival) / gate.interval) + 1
end

local function nextLookMs(gate)
  local isFree = turnsIn(gate) > 0
  local more = isFree and gate.micros + gate.interval or gate.arrival - toleranceOf(gate)
  return math.ceil(more / 1000)
end

local function gateText(gate)
  local clocks = gate.clocks
  return ('%.2f %.0f %.0f %.0f %.0f %.0f'):format(gate.arrival, clocks[1], clocks[2], clocks[3],
    gate.queueClosed, gate.groupsClosed)
end

local function aheadBy(gate, ahead, before)
  local most = toleranceOf(gate) + gate.debt * gate.interval
  return math.min(most, before > 0 and ahead / before * gate.interval or ahead)
end
