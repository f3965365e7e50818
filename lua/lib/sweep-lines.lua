-- sweep-lines: lines of jobs and dead letters that are not there any more go. A cancel without a
-- window leaves such lines, and so does an older process.
-- GIVES   sweepLines(keys, from): looks at a few of them, and notes in the field logs of meta where
--         the next look begins; from: what that field says
-- NEEDS   log-lines
-- RULE    Once nothing is kept the field goes, and nobody looks any more.
local function sweepLines(keys, from)
  local page, gone = redis.call('HSCAN', keys.logs, from, 'COUNT', 10), {}
  local nextFrom, fields = page[1], page[2]
  for at = 1, #fields, 2 do
    local id = fields[at]:match('^%z(%d+%-%d+)$')
    local isThere = id and #redis.call('XRANGE', keys.dead, id, id) > 0
      or redis.call('HSTRLEN', keys.jobs, fields[at]) > 0
    gone[#gone + 1] = not isThere and fields[at] or nil
  end
  dropLines(keys.logs, gone)
  if redis.call('EXISTS', keys.logs) == 0 then
    redis.call('HDEL', keys.meta, 'logs')
  elseif nextFrom ~= from then
    redis.call('HSET', keys.meta, 'logs', nextFrom)
  end
end
