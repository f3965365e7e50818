-- quota: whether a partition has room for one job more, where its queue has limits.
-- GIVES   roomIn(keys, meta, text): nothing where `text`, the field quota of meta, has no limits,
--         else two functions. takes(member, record, reply): the reply to a job, or `full` in its
--         place. note(replies): keeps what the jobs weigh now, and gives the replies
-- RULE    How many jobs there are Redis knows itself. Their bytes stand in the field held, with how
--         many jobs they are of: see weight. Where fewer jobs are there, somebody has ended some
--         without counting, and those are taken to have had the mean size. So an empty partition
--         has room, whoever forgot to count. Where more are there, nothing is known of the others:
--         they weigh nothing until the leader counts. A call that was cut off may have put a
--         member into scheduled: the same call again must get through, as it has its place already.
--         One function holds the others: who has no limits must not pay for their making.
local function roomIn(keys, meta, text)
  local words, of = text:match('^(%d+) (%d+)$')
  local most, bytes = tonumber(words), tonumber(of)
  -- @unreadable
  if not most then return nil end
  local there, stale = redis.call('ZCARD', keys.scheduled), redis.call('ZCARD', keys.stale)
  there = there + math.max(0, redis.call('XLEN', keys.ready) - stale)
  -- @no-bytes
  local held = bytes > 0 and redis.call('HGET', meta, 'held') or ''
  local weight, count = held:match('^(%d+) (%d+)$')
  weight, count = tonumber(weight or 0), tonumber(count or 0)
  local known = math.min(there, count)
  weight = known < count and math.floor(weight * there / count) or weight
  local isNew = false

  local function takes(member, record, reply)
    if reply ~= 'ok' and reply ~= 'replaced' then return reply end
    local count, more = 1, #record
    if reply == 'replaced' then
      count, more = 0, more - redis.call('HSTRLEN', keys.jobs, member)
    end
    local isFull = most > 0 and count > 0 and there >= most
    if isFull and not redis.call('ZSCORE', keys.scheduled, member) then
      return ('full pending %.0f %.0f'):format(most, there)
    end
    local isHeavy = bytes > 0 and more > 0 and weight + more > bytes
    if isHeavy then return ('full bytes %.0f %.0f'):format(bytes, weight) end
    there, known, weight, isNew = there + count, known + count, math.max(0, weight + more), true
    return reply
  end

  local function note(replies)
    if isNew and bytes > 0 and known > 0 then
      redis.call('HSET', meta, 'held', ('%.0f %.0f'):format(weight, known))
    end
    return replies
  end
  return { takes = takes, note = note }
end
