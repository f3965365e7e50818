#!lua flags=allow-oom
-- close: nobody of a group or of a queue is let through until a time, or somebody is again. What
-- was let through before starts all the same.
-- USES  clock, nudge, digits, line, gate, rates, own, lanes, opening, diary, closing
-- KEYS  1 meta  2 wake  3 line  4 lanes  5 holds  6 groups  7 order  8 diary
-- ARGV  1 now  2 group  3 until  4 why  5 by
--       now ms, '' = server time; group: '' = the whole partition; until ms, 0 = open it, with a
--       plus before it so many ms from now; why: a text for people, may be empty; by: who does it
-- RETURN ok | same (closed for as long or longer, or open already) | ungated
-- Whoever opens a group that a dead letter holds lets it go on without that one.
-- Few bytes, also at the memory limit: who closes spares somebody else. The leader looks at once.
local meta, wake, line = KEYS[1], KEYS[2], KEYS[3]
local lanes, holds, groups = KEYS[4], KEYS[5], KEYS[6]
local order, diary = KEYS[7], KEYS[8]
local keys = { meta = meta, line = line, lanes = lanes, holds = holds, groups = groups,
  diary = diary }
local now, micros = clock(ARGV[1])
local group, time, why, by = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local untilMs = tonumber(time) + (time:byte() == 43 and now or 0)
local state = redis.call('HMGET', meta, 'gates', 'gate')
local gate = gateOf(state[1], state[2], now, micros)
if not gate then return 'ungated' end

local function openGroup()
  local own = ownOf(keys, gate, group)
  if own.groupClosed <= now then return false end
  own.groupClosed, own.why = 0, ''
  redis.call('HSET', groups, group, ownText(own))
  return true
end

local function openHeld()
  local held = redis.call('HGET', order, group) or ''
  return held:find('^!') and redis.call('HDEL', order, group) == 1
end

local function openQueue()
  if gate.queueClosed <= now then return false end
  gate.queueClosed = 0
  use(meta, gate, 0)
  redis.call('HDEL', meta, 'closing')
  return true
end

if untilMs > 0 then return close(keys, gate, group, untilMs, why, by) and 'ok' or 'same' end
local isOpened
if group == '' then
  isOpened = openQueue()
else
  isOpened = openGroup()
  isOpened = gate.isStrict and openHeld() or isOpened
  -- Also for a call that was cut off before it came here.
  reopenLanes(keys, isGroupFull(keys, gate, group) and {} or lanesOf(line, group))
end
nudge(meta, wake, now)
if isOpened then
  enter(diary, { 'what', 'opened', 'group', group, 'by', by })
end
return isOpened and 'ok' or 'same'
