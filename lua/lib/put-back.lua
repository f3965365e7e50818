-- put-back: a running job goes back to scheduled, or ends because somebody asked to cancel it.
-- GIVES   putBack(keys, run, member, now, window, dueMs, counter): the reply of retry and defer;
--         `counter` is the field of K:meta that counts it
-- USED BY  defer, retry
-- NEEDS   run, tombstone, settle, nudge, let-go
-- RULE    A member that is in scheduled meanwhile stays as it is there: its producer's newer wish
--         wins. Into scheduled first, out of ready last.
local function putBack(keys, run, member, now, window, dueMs, counter)
  local entry, due = run.entry, ('%.0f'):format(dueMs)
  if run.cancel == '1' then
    local tombstone = tombstoneText('c', run.asked, run.digest, run.token, run.attempts)
    settle(keys.jobs, keys.done, member, tombstone, now, window)
    redis.call('HINCRBY', keys.meta, 'n.cancelled', 1)
    redis.call('HDEL', keys.runs, member)
    letGo(keys.ready, entry)
    return { 'cancelled' }
  end
  -- @index-job
  redis.call('ZADD', keys.scheduled, 'NX', due, member)
  redis.call('HSET', keys.runs, member, unboundText(run, due))
  redis.call('HINCRBY', keys.meta, counter, 1)
  nudge(keys.meta, keys.wake, dueMs)
  -- @leave-ready
  letGo(keys.ready, entry)
  return { 'ok', due }
end
