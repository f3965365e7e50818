-- compensate: a job that takes half-done effects of a dead one back becomes due.
-- GIVES   compensate(scheduled, jobs, meta, job): whether {member, record, due} was scheduled
-- NEEDS   weight
-- RULE    Once: whatever is known under its id, live or over, stays. The record comes last, as in
--         schedule: it is the commit point.
local function compensate(scheduled, jobs, meta, job)
  if job.member == '' or redis.call('HSTRLEN', jobs, job.member) > 0 then return false end
  redis.call('ZADD', scheduled, ('%.0f'):format(job.due), job.member)
  redis.call('HSET', jobs, job.member, job.record)
  reweigh(meta, #job.record, 1)
  redis.call('HINCRBY', meta, 'n.scheduled', 1)
  return true
end
