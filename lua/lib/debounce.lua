-- debounce: what a call with mode debounce means: it becomes a job, or newer data of the one there.
-- GIVES   debouncedAs(keys, call, job): the reply; whether the id is over; nothing; its tags; and
--         the news: {record: as it is stored; where a job is there also reply: in the place of
--         `replaced`, member, before: its tags, run: another text for it, score, leaves: the score
--         with which it is in line}. `job` is {member, record, due, length of what is stored}.
--         writeNews(keys, call, news): what comes for a job that is there; the reply
-- NEEDS   run, tombstone, tags, line, digits, known, held
-- RULE    A record is sent with d=<order>.<the longest wait, less the wait>, in base 36, and stored
--         with d=<ceiling>, and m=<order>.<digest of what was sent>. The higher order is the newer
--         call. A job that is due, was started or was put aside keeps its due time, or a hot key in
--         a backlog would never start. The run is written first: a record without its bit would be
--         lost at the end of the run, a bit without its record starts the data of before once more.
local function storedAs(record, asked, ceiling, mark)
  local header, bar = record:match('^1%w+([^|]*)()')
  header = header:gsub(';[dm]=[^;]*', '')
  return '1' .. asked .. header .. ';d=' .. base36(ceiling) .. ';m=' .. mark .. record:sub(bar)
end

local function behindRun(run, due, ceiling, first)
  ceiling = hasBit(run.cancel, AGAIN) and first or ceiling
  run.cancel = withBit(run.cancel, AGAIN)
  return { reply = 'behind', run = runText(run), ceiling = ceiling, due = math.min(due, ceiling) }
end

local function intoDue(run, due, ceiling)
  due = math.min(due, ceiling)
  local text = ('%.0f'):format(due)
  local news = { reply = 'merged ' .. text, score = text, ceiling = ceiling, due = due }
  if run and run.due ~= '-' then
    run.due = text
    news.run = runText(run)
  end
  return news
end

local function atItsDue(run, waits, asked, ceiling)
  local due = dueOf(waits) or run and tonumber(run.due) or asked
  local news = { reply = ('kept %.0f'):format(due), ceiling = ceiling, due = asked }
  -- Its worker was lost: the late end of that start must not hide the newer data, and a cancel from
  -- before was not of them.
  if run and (run.entry ~= '-' or run.cancel ~= '0') then
    run.cancel = onlyWaited(run.cancel)
    news.run = unboundText(run, run.due)
  end
  return news
end

local function newsOf(keys, call, job, current)
  local member, due, run = job.member, job.due, runOf(redis.call('HGET', keys.runs, job.member))
  local first = tonumber(current:match(';d=(%w+)'), 36)
  if isAhead(keys.meta, run, call.now) then return nil end
  if run and run.owner ~= '-' then return behindRun(run, due, job.ceiling, first) end
  local waits = redis.call('ZSCORE', keys.scheduled, member)
  local isNew = not run or run.attempts == '0'
  if isNew and waits and not isWaiting(waits) and tonumber(waits) > call.now then
    return intoDue(run, due, first)
  end
  local news = atItsDue(run, waits, tonumber(askedOf(current), 36), first)
  if isWaiting(waits) and priorityIn(tagsOf(job.record)) ~= priorityIn(tagsOf(current)) then
    news.leaves, news.score = waits, ('%.0f'):format(dueOf(waits))
  end
  return news
end

local function debouncedAs(keys, call, job)
  local member, record = job.member, job.record
  local order, rest = record:match('^1%w+[^|]-;d=(%w+)%.(%w+)[;|]')
  local number = order and tonumber(order, 36) or math.huge
  if number > 9007199254740991 then return 'bad-record' end
  if not mayRead(call, math.max(job.length, #record)) then return 'later' end
  local current = job.length > 0 and redis.call('HGET', keys.jobs, member) or nil
  local isOver = isTombstone(current)
  local isOther = current and not isOver and not current:find('^1%w+[^|]-;d=%w+[;|]')
  if isOther then return existsAs(keys, member, current) end
  local digest = markOf(record):match('(%x+)$')
  local mark = isOver and current:match('^%.%l(%w+ %x+)') or current and firstMark(current) or ''
  local last, before = mark:match('^(%w+) (%x+)$')
  if last == order and before == digest then
    return 'already ' .. (isOver and current:sub(2, 2) or 'live')
  end
  if last and tonumber(last, 36) >= number then
    return ('overtaken %.0f'):format(tonumber(last, 36))
  end
  job.ceiling = math.min(job.due + tonumber(rest, 36), 9007199254740991)
  local isNew = not current or isOver
  local news = not isNew and newsOf(keys, call, job, current) or
    isNew and { ceiling = job.ceiling, due = job.due }
  if not news then return 'held' end
  news.record = storedAs(record, base36(news.due), news.ceiling, order .. '.' .. digest)
  if isNew then return 'ok', isOver, nil, nil, news end
  news.member, news.before = member, tagsOf(current)
  return 'replaced', false, nil, news.before, news
end

local function writeNews(keys, call, news)
  local member, text = news.member, tagsOf(news.record)
  if news.run then
    redis.call('HSET', keys.runs, member, news.run)
  end
  if news.leaves then
    leaveLine(keys.line, member, news.leaves)
  end
  if news.score then
    redis.call('ZADD', keys.scheduled, 'XX', news.score, member)
  end
  addTags(keys.tags, { { member = member, text = text } })
  redis.call('HSET', keys.jobs, member, news.record)
  dropTags(keys.tags, member, news.before, text)
  if call.groups then
    call.groups.count(member, text, news.before)
  end
  call.entered = call.entered + select(2, (text or ''):gsub('[^,]+', ''))
  call.isFull = call.entered >= 500
  return news.reply
end
