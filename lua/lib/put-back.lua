-- put-back: how a running job leaves its worker before it is over.
-- GIVES   putBack(scheduled, runs, meta, wake, member, run, due, counter, before): it waits for its
--         due time again, and `counter` of K:meta counts it; the due time as a text. `before` is
--         wake of K:meta, as nudge takes it.
--         letGoHeld(keys, member, run, due, before): the same for one that has not begun; it was
--         not started then, and nothing is counted.
--         endCancelled(keys, member, run, now, window): it ends because somebody asked for that
-- NEEDS   run, tombstone, tags, end-tags, settle, nudge, weight, telling, again
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

local function letGoHeld(keys, member, run, due, before)
  local text = ('%.0f'):format(due)
  run.attempts = run.attempts - 1
  -- @scheduled-again
  redis.call('ZADD', keys.scheduled, 'NX', text, member)
  -- @unbound
  redis.call('HSET', keys.runs, member, unboundText(run, text))
  nudge(keys.meta, keys.wake, due, before)
  return text
end

local function endCancelled(keys, member, run, now, window)
  redis.call('HINCRBY', keys.meta, 'n.cancelled', 1)
  if hasNews(run) then
    liveAgain(keys, member, run)
    return
  end
  local mark, record = markIn(keys.jobs, member)
  local tombstone = tombstoneText('c', mark, run.token, run.attempts)
  settle(keys.jobs, keys.done, keys.logs, member, tombstone, now, window)
  reweigh(keys.meta, -#record, -1)
  endTags(keys, now, member, tagsOf(record), 'c')
  redis.call('HDEL', keys.runs, member)
  tellEnd(keys.meta, run, member, 'c')
end
