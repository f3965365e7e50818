#!lua flags=allow-oom
-- erase-lines: what handlers said of jobs that have a tag goes for ever, or is only counted, a
-- bounded batch per call.
-- USES  clock, log-lines
-- KEYS  1 logs
-- ARGV  1 now  2 tag  3 mode  4 cursor  5 limit
--       now ms, '' = server time; mode: count | remove; cursor 0 = from the beginning; limit: jobs
--       and dead letters looked at, about so many, 30 at most
-- RETURN {matched, looked at, cursor, 0 = the end}
-- A job or a dead letter that is there during the whole walk is looked at, perhaps twice.
local logs = KEYS[1]
local _, tag, mode = clock(ARGV[1]), ARGV[2], ARGV[3]
local cursor, limit = ARGV[4], math.min(tonumber(ARGV[5]), 30)
local page, found = redis.call('HSCAN', logs, cursor, 'COUNT', limit), {}
for at = 1, #page[2], 2 do
  local tags = page[2][at + 1]:match('^%d+ %d+ %d+ ([^\n]*)') or '-'
  if tags ~= '-' and (',' .. tags .. ','):find(',' .. tag .. ',', 1, true) then
    found[#found + 1] = page[2][at]
  end
end
if mode == 'remove' then
  dropLines(logs, found)
end
return { #found, #page[2] / 2, page[1] }
