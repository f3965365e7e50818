-- group: the one group of consumers that reads ready.
-- GIVES   groupOf(ready): {pending, delivered: the last entry that was}; nil when there is none
-- USED BY  check-entries, check-members, enrol, oldest, promote, repair, stats
-- RULE    No script fails for the lack of a stream or a group: both may be gone with a flush.
local function groupOf(ready)
  -- @no-stream
  if redis.call('EXISTS', ready) == 0 then return nil end
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', ready)) do
    if group[2] == 'workers' then return { pending = group[6], delivered = group[8] } end
  end
end
