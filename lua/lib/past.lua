-- past: the records of jobs that are over, in queues that keep a history.
-- GIVES   keepPast(past, ended, now, over): keeps a record of each. `over` has for each job member,
--         outcome, mark, run, deadLetter or nothing, and the note of its worker, or else record
-- USED BY  bury, cancel, cast, commit, complete, defer, expire, relay, retry, serve, start
-- RULE    A caller that does not name past keeps no history. The index comes first and goes last,
--         so nothing is kept that no sweep finds. An id has one record, its last end; an earlier
--         one moves to the id, a zero byte and its token. The same call once more is known by its
--         token. The name is taken as text where our records have it; nothing is parsed. One
--         function holds the others: who keeps no history must not pay for their making.
local function keepPast(past, ended, now, over)
  local ms, members, scores, fields = ('%.0f'):format(now), {}, {}, {}

  local function noteIn(record)
    local header, name = record:match('^([^|]*)'), record:match('^[^|]*|{"n":("[^"]*")')
    local tags = (header .. ';'):match(';t=([^;]+);')
    return (tags or '-'):gsub('%s', '=') .. ' ' .. (name and '{"n":' .. name .. '}' or '{}')
  end

  local function textOf(job)
    local run, tags, said = job.run, (job.note or noteIn(job.record)):match('^(%S+) (.*)$')
    local head = { job.outcome, run.token, run.attempts, run.failures, run.crashes, run.generation,
      job.mark:match('^%w+') or '0', ms, run.owner, job.deadLetter or '-', tags or '-' }
    return table.concat(head, ' ') .. '\n' .. (said or '{}') .. run.history
  end

  local function setAside(member, found, text)
    local before, token = found:match('^1(%S+) %l (%d+) ')
    -- @unreadable
    if not token then return '-' end
    if token == text:match('^%l (%d+) ') then return before end
    local id = member .. '\0' .. token
    redis.call('ZADD', ended, redis.call('ZSCORE', ended, member) or ms, id)
    redis.call('HSET', past, id, found)
    return token
  end

  for index, job in ipairs(over) do
    members[index] = job.member
  end
  for index, found in ipairs(redis.call('HMGET', past, unpack(members))) do
    local member, text, size = members[index], textOf(over[index]), #fields
    local before = found and setAside(member, found, text) or '-'
    scores[size + 1], scores[size + 2] = ms, member
    fields[size + 1], fields[size + 2] = member, '1' .. before .. ' ' .. text
  end
  redis.call('ZADD', ended, unpack(scores))
  redis.call('HSET', past, unpack(fields))
end
