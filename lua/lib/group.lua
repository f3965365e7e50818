-- group: the one group of consumers that reads ready.
-- GIVES   groupOf(ready): {pending, delivered: the last entry that was}; nil when there is none;
--         undeliveredIn(ready, cap): how many entries nobody has read, or, where there are fewer
--         than cap in all, how many there are, which is cheaper to know; ensureGroup(ready,
--         entries): makes it where there is no stream, which has no entries; addReady(ready,
--         member, due, ...): a new entry, of which it gives the id, and the group before the first
--         one; behind the due time what the entry says besides
-- RULE    No script fails for the lack of a stream or a group: both may be gone with a flush. An
--         entry that a cut call has deleted and not acknowledged is held without being there, so
--         more may be held than there are.
local function groupOf(ready)
  -- @no-stream
  if redis.call('EXISTS', ready) == 0 then return nil end
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', ready)) do
    if group[2] == 'workers' then return { pending = group[6], delivered = group[8] } end
  end
end

local function undeliveredIn(ready, cap)
  local length = redis.call('XLEN', ready)
  local group = length >= cap and groupOf(ready)
  return math.max(0, length - (group and group.pending or 0))
end

local function ensureGroup(ready, entries)
  if entries > 0 or redis.call('EXISTS', ready) == 1 then return end
  redis.call('XGROUP', 'CREATE', ready, 'workers', '0', 'MKSTREAM')
end

local function addReady(ready, member, due, ...)
  local entry = redis.call('XADD', ready, 'NOMKSTREAM', '*', 'member', member, 'due', due, ...)
  -- @at-once
  if entry then return entry end
  ensureGroup(ready, 0)
  return (redis.call('XADD', ready, '*', 'member', member, 'due', due, ...))
end
