-- quota: whether a partition has room for one job more, where its queue has limits.
-- GIVES   roomOf(keys, meta, text): what there is room for, or nothing without limits; `text` is
--         the field quota of meta. roomFor(keys, room, job, reply): the reply to a job {member,
--         record}, or `full` in its place. noteRoom(meta, room): keeps what the jobs weigh now
-- USED BY  schedule
-- RULE    How many jobs there are Redis knows itself. Their bytes stand in the field held, with how
--         many jobs they were of: who ends a job does not count, and what has gone since is taken
--         to have had the mean size. So an empty partition has room, whoever forgot to count. Where
--         nobody has counted yet, only what comes is known. A call that was cut off may have put a
--         member into scheduled: the same call again must get through, as it has its place already.
local function roomOf(keys, meta, text)
  local most, bytes = (text or ''):match('^(%d+) (%d+)$')
  if not most then return nil end
  local room = { most = tonumber(most), bytes = tonumber(bytes), weight = 0, known = 0 }
  room.there = redis.call('ZCARD', keys.scheduled)
  room.there = room.there + (keys.ready and redis.call('XLEN', keys.ready) or 0)
  -- @no-bytes
  if room.bytes == 0 then return room end
  local held = redis.call('HGET', meta, 'held') or ''
  local weight, count = held:match('^(%d+) (%d+)$')
  if tonumber(count or 0) > 0 then
    room.known = room.there
    room.weight = math.floor(tonumber(weight) * room.there / tonumber(count))
  end
  return room
end

local function roomFor(keys, room, job, reply)
  if reply ~= 'ok' and reply ~= 'replaced' then return reply end
  local count, more = 1, #job.record
  if reply == 'replaced' then
    count, more = 0, more - redis.call('HSTRLEN', keys.jobs, job.member)
  end
  local isFull = room.most > 0 and count > 0 and room.there >= room.most
  if isFull and not redis.call('ZSCORE', keys.scheduled, job.member) then
    return ('full pending %.0f %.0f'):format(room.most, room.there)
  end
  local isHeavy = room.bytes > 0 and more > 0 and room.weight + more > room.bytes
  if isHeavy then return ('full bytes %.0f %.0f'):format(room.bytes, room.weight) end
  room.there, room.known, room.isNew = room.there + count, room.known + count, true
  room.weight = math.max(0, room.weight + more)
  return reply
end

local function noteRoom(meta, room)
  if not room or room.bytes == 0 or not room.isNew or room.known == 0 then return end
  redis.call('HSET', meta, 'held', ('%.0f %.0f'):format(room.weight, room.known))
end
