-- odd-member: a due member of scheduled that is not plain: bare, nonsense, or due at an odd time.
-- GIVES   settleOdd(keys, now, member, score): what becomes of it, and a number: ready or adopted
--         (the same, with a record of its own since now) with its due time; buried with the bytes
--         that were written; waits
-- NEEDS   run, nonsense, adopt
-- RULE    A bare member that runs now waits in the zset for its next turn. The caller puts into
--         ready what is to be there, and then removes what does not wait.
local function settleOdd(keys, now, member, score)
  local fault, due = faultIn(member, score), score == 0 and now or math.floor(score)
  local isManaged = not fault and member:sub(1, 2) == 'j:'
  if isManaged then return 'ready', due end
  local run = runOf(redis.call('HGET', keys.runs, member) or NEVER_RAN) or {}
  if fault then
    local record = run.entry == '-' and redis.call('HGET', keys.jobs, member)
    local job = { member = member, record = record, reason = fault }
    return 'buried', buryNonsense(keys, now, job)
  elseif run.entry == '-' then
    return adopt(keys, now, member, run, due) == 1 and 'adopted' or 'ready', due
  end
  redis.call('ZADD', keys.scheduled, 'XX', now + 1000, member)
  return 'waits', due
end
