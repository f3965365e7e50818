#!lua flags=allow-oom
-- spend: running jobs say how many turns of their rates they have really used. Many jobs per call.
-- USES  clock, run, charge, nudge, digits, line, gate, rates, own, costs, lanes, opening
-- KEYS  1 runs  2 ready  3 jobs  4 meta  5 wake  6 line  7 lanes  8 holds  9 groups  10 spends
-- ARGV  1 now  then per job: entry, member, token, nth, turns
--       nth: which call of its start this is, from 1; turns: so many its start has used in all
-- RETURN one text per job: ok | uncounted (jobs of the queue cost one turn each) | fenced | gone
-- More turns are owed from now on; fewer give back what is not through yet, so that others may
-- start. spends has by entry: token, nth and turns of the last call. By that a call is known that
-- was carried out, or comes late. An entry that another worker took over used no turn for that:
-- what its start before has said stays used, and all that this one says is more. More is used
-- before it is written down, and less after it: a call that is cut off and made again has used too
-- many, never too few. Entries that are over go here and by the way, as nobody else knows of them:
-- there are at most 64, and two for each that is ready or runs.
local keys = { ready = KEYS[2], jobs = KEYS[3], meta = KEYS[4], wake = KEYS[5], line = KEYS[6],
  lanes = KEYS[7], holds = KEYS[8], groups = KEYS[9] }
local runs, spends = KEYS[1], KEYS[10]
local now, micros = clock(ARGV[1])
local state = redis.call('HMGET', keys.meta, 'gates', 'gate')
local gate = gateOf(state[1], state[2], now, micros)
local replies, isSooner = {}, false

local function useLess(group, own, charge)
  local charges = ofNow(keys.meta, gate, { charge })
  giveBack(keys.meta, gate, charges)
  if own and charges[1] then
    giveOwnBack(keys, own, charge)
    local lanes = isGroupFull(keys, gate, group) and {} or lanesOf(keys.line, group)
    reopenLanes(keys, lanes)
  end
  isSooner = true
end

local function useMore(own, count)
  -- What is owed counts from now on.
  allowed(keys.meta, gate)
  -- @more-of-all
  if gate.interval > 0 then
    use(keys.meta, gate, count)
  end
  if own then
    turnsIn(own)
    useOwn(keys, own, count)
  end
end

local function correct(job)
  local before = redis.call('HGET', spends, job.entry) or ''
  local token, nth, turns = before:match('^(%d+) (%d+) (%d+)$')
  local isSame = token == job.token
  -- @known-call
  if isSame and tonumber(nth) >= job.nth then return end
  local found = redis.call('XRANGE', keys.ready, job.entry, job.entry)[1]
  local charge = chargeIn(job.entry, found and found[2] or {})
  if token then
    charge.turns = isSame and tonumber(turns) or 0
  end
  charge.left = job.turns
  local more, group = job.turns - charge.turns, groupIn(job.member)
  local own = group ~= '' and gate.hasOwn and ownOf(keys, gate, group)
  -- @more-of-them
  if more > 0 then
    useMore(own, more)
  end
  local text = ('%s %.0f %.0f'):format(job.token, job.nth, job.turns)
  redis.call('HSET', spends, job.entry, text)
  -- @fewer
  if more < 0 then
    useLess(group, own, charge)
  end
end

local function dropOver()
  -- @some-over
  if redis.call('HLEN', spends) <= 64 + 2 * redis.call('XLEN', keys.ready) then return end
  local found = redis.call('HSCAN', spends, redis.call('HGET', spends, '-') or '0', 'COUNT', 16)
  local gone = {}
  for at = 1, #found[2], 2 do
    local entry = found[2][at]
    if entry ~= '-' and #redis.call('XRANGE', keys.ready, entry, entry) == 0 then
      gone[#gone + 1] = entry
    end
  end
  -- Where the next call goes on.
  redis.call('HSET', spends, '-', found[1])
  if gone[1] then
    redis.call('HDEL', spends, unpack(gone))
  end
end

for at = 2, #ARGV, 5 do
  local job = { entry = ARGV[at], member = ARGV[at + 1], token = ARGV[at + 2] }
  local text = redis.call('HGET', runs, job.member) or ''
  local token, _, here = text:match(ENDING)
  local reply = 'gone'
  if token and (token ~= job.token or here ~= job.entry) then
    reply = 'fenced'
  elseif token then
    reply = gate and gate.hasCosts and 'ok' or 'uncounted'
  end
  if reply == 'ok' then
    job.nth, job.turns = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    correct(job)
  end
  replies[#replies + 1] = reply
end
if isSooner then
  nudge(keys.meta, keys.wake, now)
end
dropOver()
return replies
