-- waiting: whether a job waits for its start, so that somebody may still change it.
-- GIVES   waitingIn(keys, member, seen, now): the reply if it may not be changed, else nil; then
--         its score in scheduled, or false in ready; its run or nil; and whether it has a record.
--         `seen` is the token of its last start as the caller saw it, '' = any
-- NEEDS   run, tombstone, held
-- RULE    What has an owner runs, also while its worker is not heard of. A bare member that was put
--         again waits, whatever is left of its earlier life. Another token than the one seen: it
--         was started since, and a call whose reply was lost must not come twice. One that its
--         worker holds is let go first, and the caller asks again.
local function waitingIn(keys, member, seen, now)
  local waits = redis.call('ZSCORE', keys.scheduled, member)
  local tombstone, length = tombstoneOf(keys.jobs, member)
  local isBare = member:sub(1, 2) ~= 'j:'
  if tombstone and not (waits and isBare) then return 'over ' .. tombstone:sub(2, 2) end
  if length == 0 and not (waits and isBare) then return 'unknown' end
  local run = runOf(redis.call('HGET', keys.runs, member))
  -- @held-first
  if isAhead(keys.meta, run, now) then return 'held' end
  if run and run.owner ~= '-' then return 'running' end
  if seen ~= '' and (run and run.token or '0') ~= seen then return 'started' end
  return nil, waits, run, length > 0 and not tombstone
end
