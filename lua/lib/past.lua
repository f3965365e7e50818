-- past: the records of jobs that are over, in queues that keep a history.
-- GIVES   keepPast(past, ended, now, over): keeps a record of each. `over` has for each job member,
--         outcome, mark, run, deadLetter or nothing, and the note of its worker, or else record;
--         and window, where it may have ended without a start
-- NEEDS   named
-- RULE    A caller that does not name past keeps no history. The index comes first and goes last,
--         so nothing is kept that no sweep finds. An id has one record, its last end; an earlier
--         one moves to the id, a zero byte and the ms of its end, or the next that is free. The
--         same call once more is known by token and generation. Who never started has no token: it
--         is known by its mark, and a bare member, or one whose window has passed, by the ms too. A
--         note of - as tags is none, so the one tag - has a comma before it. One function holds the
--         others: who keeps no history must not pay for their making.
local function keepPast(past, ended, now, over)
  local ms, members, scores, fields = ('%.0f'):format(now), {}, {}, {}

  local function noteIn(record)
    local tags, name = (record:match('^[^|]*') .. ';'):match(';t=([^;]+);'), nameIn(record)
    -- @dash
    tags = tags == '-' and ',-' or tags or '-'
    local said = name and not name:find('%c') and '{"n":' .. name .. '}' or '{}'
    return tags:gsub('%s', '=') .. ' ' .. said
  end

  local function markOfEnd(job)
    return (job.mark:gsub(' ', '.')):match('^%w+%.?%x*') or '0'
  end

  local function textOf(job)
    local run, tags, said = job.run, (job.note or noteIn(job.record)):match('^(%S+) (.*)$')
    local head = { job.outcome, run.token, run.attempts, run.failures, run.crashes, run.generation,
      markOfEnd(job), ms, run.owner, job.deadLetter or '-', tags or '-' }
    return table.concat(head, ' ') .. '\n' .. (said or '{}') .. run.history
  end

  local function isSameEnd(job, token, generation, mark, before)
    local isIt = token == job.run.token and generation == job.run.generation
    if not isIt or token ~= '0' then return isIt end
    -- @window
    local window = job.member:sub(1, 2) == 'j:' and job.window or 0
    return mark == markOfEnd(job) and tonumber(before) >= now - window
  end

  local function setAside(job, found)
    local before, token, generation, mark, at =
      found:match('^1(%S+) %l (%d+) %S+ %S+ %S+ (%S+) (%S+) (%d+) ')
    -- @unreadable
    if not token then return '-' end
    if isSameEnd(job, token, generation, mark, at) then return before end
    local place, there = tonumber(at), nil
    -- @endless-places
    repeat
      at, place = ('%.0f'):format(place), place + 1
      there = redis.call('HGET', past, job.member .. '\0' .. at)
    until not there or there == found
    local id = job.member .. '\0' .. at
    redis.call('ZADD', ended, redis.call('ZSCORE', ended, job.member) or ms, id)
    redis.call('HSET', past, id, found)
    return at
  end

  for index, job in ipairs(over) do
    members[index] = job.member
  end
  for index, found in ipairs(redis.call('HMGET', past, unpack(members))) do
    local member, text, size = members[index], textOf(over[index]), #fields
    local before = found and setAside(over[index], found) or '-'
    scores[size + 1], scores[size + 2] = ms, member
    fields[size + 1], fields[size + 2] = member, '1' .. before .. ' ' .. text
  end
  redis.call('ZADD', ended, unpack(scores))
  redis.call('HSET', past, unpack(fields))
end
