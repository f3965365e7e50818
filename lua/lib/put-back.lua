-- put-back: how a running job leaves its worker before it is over.
-- GIVES   putBack(scheduled, runs, meta, wake, member, run, due, counter, before): it waits for its
--         due time again, and `counter` of K:meta counts it; the due time as a text. `before` is
--         wake of K:meta, as nudge takes it.
--         endCancelled(jobs, runs, done, meta, tags, member, run, now, window): it ends because
--         somebody asked for that
-- NEEDS   run, tombstone, tags, settle, nudge, weight, telling
-- RULE    A member that is in scheduled meanwhile stays as it is there: its producer's newer wish
--         wins. Into scheduled first; who calls this takes it out of ready last.
local function putBack(scheduled, runs, meta, wake, member, run, due, counter, before)
  local text = ('%.0f'):format(due)
  run.entry, run.owner, run.due = '-', '-', text
  redis.call('ZADD', scheduled, 'NX', text, member)
  redis.call('HSET', runs, member, runText(run))
  redis.call('HINCRBY', meta, counter, 1)
  nudge(meta, wake, due, before)
  return text
end

local function endCancelled(jobs, runs, done, meta, tags, member, run, now, window)
  local mark, record = markIn(jobs, member)
  local tombstone = tombstoneText('c', mark, run.token, run.attempts)
  settle(jobs, done, member, tombstone, now, window)
  reweigh(meta, -#record, -1)
  dropTags(tags, member, tagsOf(record))
  redis.call('HINCRBY', meta, 'n.cancelled', 1)
  redis.call('HDEL', runs, member)
  tellEnd(meta, run, member, 'c')
end
