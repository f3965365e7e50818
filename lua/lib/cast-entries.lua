-- cast-entries: jobs become entries of the stream that every subscriber reads.
-- GIVES   addEntries(keys, call, list): adds those of the list with the outcome d; call.count,
--         call.total, call.moved and call.lateness grow, and run.token of each becomes its count
-- RULE    The totals are written first: what was counted and is not there was missed, and readers
--         are told so; an entry that is there twice under one count would be taken for another.
local function addEntries(keys, call, list)
  local sent = {}
  for _, job in ipairs(list) do
    if job.outcome == 'd' then
      job.before = call.total
      call.count, call.total = call.count + 1, call.total + #job.member + #job.record
      job.run.token, sent[#sent + 1] = ('%.0f'):format(call.count), job
    end
  end
  if #sent == 0 then return end
  redis.call('HSET', keys.meta, 'cast', ('%.0f %.0f'):format(call.count, call.total))
  for _, job in ipairs(sent) do
    local due = ('%.0f'):format(job.due)
    redis.call('XADD', keys.cast, '*', 'count', job.run.token, 'before',
      ('%.0f'):format(job.before), 'member', job.member, 'due', due, 'record', job.record)
    local size = #call.lateness
    call.lateness[size + 1], call.lateness[size + 2] = call.now - job.due, 1
  end
  call.moved = call.moved + #sent
end
