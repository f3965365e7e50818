-- own: what a single group may have: its limits, where it has some of its own, how far it has used
-- its rate, and until when it is closed.
-- GIVES   ownOf(keys, gate, group): {group, most, interval, burst, weight, arrival, since, why,
--         groupClosed}, of which turnsIn of gate takes interval, burst, arrival and micros;
--         pending: so many jobs of it may wait or run, nil = as of all groups;
--         ownTurns(gate, own): so many it may have now; whenMore(gate, own): ms when it may have
--         one more; useOwn(keys, own, count): so many are used, or given back; ownText(own): its
--         state, as K:groups has it; isIdle(keys, gate, group): nothing of its state is left
-- NEEDS   gate
-- RULE    K:groups has two fields of a group. Its name: the arrival of its rate, and until when it
--         is closed and why, as long as either is ahead of now; then, behind a byte 1, when it last
--         had a turn, and the interval of the rate of then. With another rate the turns that were
--         used count as if it had been that one: what was started stays remembered, without a walk
--         through all groups. A space and its name, or the beginning of names and an asterisk: the
--         limits that differ from those of all groups, - = as all. The exact name counts, then the
--         longest beginning. Read once a call.
local function ownOf(keys, gate, group)
  local own = gate.own[group]
  if own then return own end
  local fields, said = { group, ' ' .. group }, ''
  for length in gate.lengths:gmatch('[1-9]%d*') do
    if tonumber(length) <= #group then
      fields[#fields + 1] = ' ' .. group:sub(1, tonumber(length)) .. '*'
    end
  end
  local found = redis.call('HMGET', keys.groups, unpack(fields))
  for nth = #fields, 2, -1 do
    said = found[nth] or said
  end
  local most, interval, burst, weight, pending = said:match('^(%S+) (%S+) (%S+) (%S+) ?(%S*)$')
  local arrival, groupClosed, rest = (found[1] or ''):match('^([%d.]+) (%d+)(.*)$')
  local why, since, pace = (rest or ''):match('^(.*)\1(%d+) ([%d.]+)$')
  own = { group = group, micros = gate.micros, why = why or rest or '' }
  own.most = tonumber(most or nil) or gate.perGroup
  own.interval = tonumber(interval or nil) or gate.groupInterval
  own.burst = tonumber(burst or nil) or gate.groupBurst
  own.weight = tonumber(weight or nil) or 1
  own.pending = tonumber(pending or nil)
  own.arrival, own.groupClosed = tonumber(arrival or 0), tonumber(groupClosed or 0)
  own.since, own.pace, own.debt = tonumber(since or own.micros), tonumber(pace), gate.debt
  -- @back-with-clock
  if gate.hasCosts and own.since > own.micros then
    own.arrival = math.max(0, own.arrival - (own.since - own.micros))
    own.since, own.isBack = own.micros, true
  end
  if pace and own.interval > 0 and own.pace ~= own.interval then
    own.arrival = own.since + aheadBy(own, own.arrival - own.since, own.pace)
    own.pace = own.interval
  end
  gate.own[group] = own
  return own
end

local function ownTurns(gate, own)
  return own.groupClosed > gate.now and 0 or turnsIn(own)
end

local function whenMore(gate, own)
  -- @is-used
  local isUsed = own.interval > 0 and turnsIn(own) <= 0
  return math.max(gate.now + 1, own.groupClosed, isUsed and nextLookMs(own) or 0)
end

local function ownText(own)
  local text = ('%.2f %.0f'):format(own.arrival, own.groupClosed) .. own.why
  return own.pace and text .. ('\1%.0f %.3f'):format(own.since, own.pace) or text
end

local function useOwn(keys, own, count)
  -- What the clock took back is written also where nothing is used.
  if own.interval == 0 or count == 0 and not own.isBack then return end
  own.isBack = nil
  own.arrival = math.max(0, own.arrival + count * own.interval)
  -- @used
  own.since, own.pace = count > 0 and own.micros or own.since, own.interval
  redis.call('HSET', keys.groups, own.group, ownText(own))
end

local function isIdle(keys, gate, group)
  local own = ownOf(keys, gate, group)
  return own.arrival <= gate.micros and own.groupClosed <= gate.now
end
