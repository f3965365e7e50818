#!lua
-- schedule: a job comes into being, or the same call is recognised. Many jobs per call.
-- USES  clock, log-lines, run, tombstone, stale, tags, digits, line, stop-order, held, known,
--       judging, debounce, sets, joining, closed-tags, quota, gate, own, group-quota, nudge,
--       sooner, vacating, ordering
-- KEYS  1 scheduled  2 jobs  3 runs  4 done  5 meta  6 wake  7 stale  8 tags  9 ready  10 line
--       11 groups  12 closed  13 order  14 lanes  15 logs
-- ARGV  1 now  2 generation  3 mode  4 horizon  5 bytes  then per job: member, record, due
--       now ms, '' = server time, and when the call was sent first, see the part clock
--       generation: that of the caller's layout. With = before it the layout was read some time
--       ago, and a partition that has no generation may have been removed since: moved. With + it
--       was read just now, and the partition gets this generation.
--       mode keep | replace | update | debounce; horizon ms ahead of now; bytes: largest record;
--       due ms, 0 = now, or from 1e11 (the year 1973): what is less was meant in seconds
-- RETURN one text per job: ok | ok <due>, replaced <due> (in strict order its due time was given,
--        see the part ordering) | replaced | already <live or outcome letter> | already live <due>
--        (to a call that says when it was sent first) | exists <due> | running | merged <due>, kept
--        <due>, behind, overtaken <order>, see below | bad-due <now> | bad-member | bad-record |
--        too-large | full pending <limit> <there> | full bytes <limit> <there> | full group <limit>
--        <there> (a limit of its queue, or of its group: nothing was changed) | uncounted (jobs of
--        its group are counted, and its header has no tag for that: nothing was changed) | closed
--        <until> <tag> (no job with the tag may start: nothing was changed) | no-set (it would be a
--        member of a set that is not there, is over, or is of another group: nothing was changed) |
--        held (its worker lets the job there go: call again) | later (not looked at: too many
--        bytes, call again); or {'moved', generation} when the
--        partition has another generation
-- Jobs are judged first and then written together: the zset first, the records last, which are the
-- commit point. An id that comes again in the same call is judged after what came before it was
-- written. No allow-oom: a full Redis refuses the call up front. A live id is never overwritten
-- unless mode is replace, and a running one not even then. A job that is taken out of ready by its
-- new life leaves an entry there: stale notes it, so that start does not take it for a lost record.
-- Tags come before the record, and those of a replaced record go after it; a call that has entered
-- 500 tags does no more. A call that was made before is recognised also where there is no room. The
-- weight of the jobs is noted last: a call that is cut off before leaves it to the leader, which
-- counts again and again.
-- With mode debounce the data of a call are newer or older than others by its order. An id that is
-- over gets a new life. A job that waits for its first start gets the newer data and moves to the
-- due time, up to its ceiling (merged); one that is due, waits for another start or has lost its
-- worker gets the data and keeps its due time (kept); of one that runs the next life begins when
-- the run ends (behind). Overtaken: newer data are there, or were. A job that was made without
-- debounce stays as it is (exists). The priority of a job and its group are entries of its tags.
local scheduled, jobs, runs, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local meta, wake, stale, tags, ready = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local line, groups, closed = KEYS[10], KEYS[11], KEYS[12]
local order, lanes, logs = KEYS[13], KEYS[14], KEYS[15]
local now, _, first = clock(ARGV[1])
local sign, layout = ARGV[2]:match('^([=+]?)(.*)$')
local mode, horizon, bytes = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, stale = stale,
  done = done, meta = meta, tags = tags, groups = groups, line = line, order = order,
  lanes = lanes, wake = wake, logs = logs }
local call = { mode = mode, spent = 0, entered = 0, now = now, first = first, horizon = horizon,
  bytes = bytes }

local state = redis.call('HMGET', meta, 'generation', 'wake', 'quota', 'gates', 'closed', 'logs')
keys.logs = state[6] and logs
if (state[1] or sign ~= '=' and '0') ~= layout then return { 'moved', state[1] or '0' } end
call.room = state[3] and roomIn(keys, meta, state[3])
if state[4] and state[4]:find(' p%d') then
  --@lazy
  call.groups = groupRoomIn(keys, gateOf(state[4], nil, now), state[4])
end
local unlessClosed, debounced, written
if state[5] and closed then
  --@lazy
  unlessClosed = closedReply
end
local written, inOrder
if mode == 'debounce' then
  --@lazy
  call.debounced, written = debouncedAs, writeNews
end
if order and state[4] and lettersIn(state[4]) then
  --@lazy
  inOrder = orderingIn(keys, now)
end

local replies, added, soonest, size = {}, 0, math.huge, 0
local scores, records, fresh, over, held, words = {}, {}, {}, {}, {}, {}

local function write(isTime)
  if size == 0 or not isTime then return end
  if inOrder then
    inOrder.note()
  end
  -- @index-job
  redis.call('ZADD', scheduled, unpack(scores))
  if #fresh > 0 then
    redis.call('HSET', runs, unpack(fresh))
  end
  -- @enter-tags
  addTags(tags, words)
  -- @keep-record
  redis.call('HSET', jobs, unpack(records))
  for _, one in ipairs(words) do
    dropTags(tags, one.member, one.before, one.text)
  end
  if #over > 0 then
    dropLines(keys.logs, over)
    redis.call('ZREM', done, unpack(over))
  end
  scores, records, fresh, over, held, words, size = {}, {}, {}, {}, {}, {}, 0
end

for at = 6, #ARGV, 3 do
  local member, record, text = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local due, reply, isOver, generation, before, news = tonumber(text), 'later', false, nil, nil, nil
  local tagged, told
  write(held[member] or size >= 500)
  if not call.isFull then
    reply, isOver, generation, before, news = judgeJob(keys, call, member, record, due)
    tagged = (reply == 'ok' or reply == 'replaced') and tagsOf(record) or nil
    if tagged and tagged:find(' set:', 1, true) or before and before:find(' set:', 1, true) then
      --@lazy
      reply = joinReply(keys, call, { member = member, text = tagged, due = due }, before, reply)
    end
    reply = unlessClosed and unlessClosed(closed, record, reply) or reply
    reply = call.groups and call.groups.refusal(member, record, reply) or reply
    -- What is stored of a debounced job is longer than what is sent.
    record = news and news.record or record
    reply = call.room and call.room.takes(member, record, reply) or reply
  end
  -- @news
  if reply == 'replaced' and news then
    reply, soonest = written(keys, call, news), math.min(soonest, tonumber(news.score) or soonest)
  elseif reply == 'ok' or reply == 'replaced' then
    if inOrder then
      due, told, text = inOrder.place(member, due, reply, text)
    end
    if reply == 'replaced' then
      local waits = redis.call('ZSCORE', scheduled, member)
      if waits then
        leaveLine(line, member, waits)
      else
        noteStale(stale, member, now)
      end
    end
    held[member], size = true, size + 2
    scores[size - 1], scores[size] = text:find('^%d+$') and text or ('%.0f'):format(due), member
    records[size - 1], records[size] = member, record
    if generation then
      fresh[#fresh + 1], fresh[#fresh + 2] = member, freshRun(0, generation + 1, 0, '-')
    end
    over[#over + 1] = isOver and member or nil
    if call.groups then
      call.groups.count(member, tagged, before)
    end
    if tagged or before then
      words[#words + 1] = { member = member, text = tagged, before = before }
      call.entered = call.entered + select(2, (tagged or ''):gsub('[^,]+', ''))
      call.isFull = call.entered >= 500
    end
    added, soonest = added + (reply == 'ok' and 1 or 0), math.min(soonest, due)
  end
  replies[#replies + 1] = reply .. (told or '')
end
write(true)
if added > 0 then
  redis.call('HINCRBY', meta, 'n.scheduled', added)
end
if sign == '+' and not state[1] then
  redis.call('HSET', meta, 'generation', layout)
end
nudge(meta, wake, soonest, state[2])
return call.room and call.room.note(replies) or replies
