-- offers: entries of ready that were added before their job was due, so that its worker has it in
-- time. The job stays in scheduled until it is started.
-- GIVES   offerSoon(keys, reply, now, ahead, mark, limit): adds them for what is due until `ahead`
--         ms from now; mark: up to there it was done before. reply is that of promote, and has
--         them with a lateness of -1; its next is the first that was not offered by this call
-- NEEDS   group
-- RULE    What was offered once is not offered again: a job that was let go waits for its due
--         time. Where entries wait to be read no worker has a free slot, and nothing is offered.
--         Members and due times that are odd wait until they are due. The part offered says what
--         an offer is.
local function offerSoon(keys, reply, now, ahead, mark, limit)
  local group, until_ = groupOf(keys.ready), now + ahead
  local isBusy = reply[4] - reply[6] > (group and group.pending or 0)
  if isBusy or not group then return end
  -- The clock went back.
  mark = mark > until_ and now or math.max(mark, now)
  local below = tonumber(reply[3] ~= '' and reply[3] or nil)
  below = below and below <= mark and below
  local found = redis.call('ZRANGEBYSCORE', keys.scheduled, '(' .. ('%.0f'):format(mark),
    ('%.0f'):format(until_), 'WITHSCORES', 'LIMIT', 0, limit)
  -- Those of the last due time may not be all.
  local isCut = #found == 2 * limit
  local last, count = isCut and found[#found], 0
  for at = 1, #found, 2 do
    local member, due = found[at], found[at + 1]
    if due ~= last then
      mark = tonumber(due)
      if #due == 13 and #member <= 200 and member:find('^j:[!-~]*$') then
        addReady(keys.ready, member, due)
        count = count + 1
      else
        below = math.min(below or mark, mark)
      end
    end
  end
  if count == 0 then return end
  mark = isCut and mark or until_
  local from = '(' .. ('%.0f'):format(mark)
  local next = redis.call('ZRANGEBYSCORE', keys.scheduled, from, '+inf', 'WITHSCORES',
    'LIMIT', 0, 1)
  local head = below or tonumber(next[2] or 9007199254740991)
  head = head < 9007199254740991 and ('%.0f'):format(math.ceil(head))
  redis.call('HSET', keys.meta, 'ahead', ('%.0f'):format(mark), 'wake', head or '9007199254740991')
  redis.call('HINCRBY', keys.meta, 'n.promoted', count)
  reply[3], reply[4], reply[6] = head or '', reply[4] + count, reply[6] + count
  reply[#reply + 1], reply[#reply + 2] = -1, count
end
