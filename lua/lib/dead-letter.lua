-- dead-letter: jobs that cannot go on, kept for people.
-- GIVES   addDeadLetter(dead, now, job): its id; newestDeadLetters(dead): the newest 8, or
--         256 KiB of them, each {id, fields}; deadLetterOf(dead, member, token): the one of
--         this start among those; deadLetterIn(dead, tombstone): the one that it names
-- RULE    The dead letter is added before anything is removed. A call that was cut off after that
--         finds it among the newest by position: member 2, record 4, reason 6, history 8, token 10.
--         So does the same call after a lost reply, where no tombstone is kept.
local function addDeadLetter(dead, now, job)
  local id = redis.call('XADD', dead, '*', 'member', job.member, 'record', job.record,
    'reason', job.reason, 'history', (job.history or ''):sub(2), 'token', job.token or 0,
    'attempts', job.attempts or 0, 'generation', job.generation or 0,
    'at', ('%.0f'):format(now), 'failures', job.failures or 0, 'crashes', job.crashes or 0)
  return id
end

local function newestDeadLetters(dead)
  local newest, from, bytes = {}, '+', 0
  while #newest < 8 and bytes < 262144 do
    local deadLetter = redis.call('XREVRANGE', dead, from, '-', 'COUNT', 1)[1]
    if not deadLetter then return newest end
    for _, word in ipairs(deadLetter[2]) do
      bytes = bytes + #word
    end
    newest[#newest + 1], from = deadLetter, '(' .. deadLetter[1]
  end
  return newest
end

local function deadLetterOf(dead, member, token)
  for _, found in ipairs(newestDeadLetters(dead)) do
    if found[2][2] == member and found[2][10] == token then return found end
  end
end

local function deadLetterIn(dead, tombstone)
  local id = tombstone:match('(%S+)$')
  return redis.call('XRANGE', dead, id, id)[1]
end
