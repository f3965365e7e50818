#!lua
-- log: lines that handlers say of their running jobs are kept with these jobs. Many jobs per call.
-- USES  run
-- KEYS  1 runs  2 meta  3 logs
-- ARGV  1 most  2 bytes  then per job: entry, member, token, last, tags, lines
--       most: lines that are kept of a job; bytes of them; last: the number of the last of these
--       lines, counted from 1 in each start; tags: as past has them, - = none; lines: one or more,
--       with line breaks between
-- RETURN one text per job: ok | fenced | gone
-- Kept is a head (token of the last start that said something, the number of its last line, how
-- many lines are not kept, tags), then the lines, the oldest first. By its number a line is known
-- that an earlier call has brought, and the lines are counted that never came. The first start of a
-- job begins anew: what is there is of an earlier life of its id. The field logs of meta comes
-- first: by that all others know that there may be lines, and it is where the sweep looks next. No
-- allow-oom: a full Redis keeps no line.
local runs, meta, logs = KEYS[1], KEYS[2], KEYS[3]
local most, bytes = tonumber(ARGV[1]), tonumber(ARGV[2])
local replies = {}

-- The lines that are kept, and how many are not.
local function cutDown(text, unkept)
  local size, from = select(2, text:gsub('\n', '')), 1
  while from and (size > most or #text - from >= bytes) do
    from = text:find('\n', from + 1, true)
    size, unkept = size - 1, unkept + 1
  end
  return from and text:sub(from) or '', unkept
end

local function keep(job, said)
  local before = redis.call('HGET', logs, job.member) or ''
  local token, known, unkept, text = before:match('^(%d+) (%d+) (%d+) [^\n]*(.*)$')
  if token ~= job.token then
    known = 0
    if not token or job.attempts == '1' then
      unkept, text = 0, ''
    end
  end
  local first = job.last - select(2, said:gsub('\n', ''))
  while said and first <= tonumber(known) do
    said, first = said:match('\n(.*)$'), first + 1
  end
  if not said then return end
  text, unkept = cutDown(text .. '\n' .. said, unkept + first - known - 1)
  if not redis.call('HGET', meta, 'logs') then
    redis.call('HSET', meta, 'logs', '0')
  end
  local head = ('%s %.0f %.0f %s'):format(job.token, job.last, unkept, job.tags)
  redis.call('HSET', logs, job.member, head .. text)
end

for at = 3, #ARGV, 6 do
  local entry, member, token = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local text = redis.call('HGET', runs, member) or ''
  local own, attempts, here = text:match(ENDING)
  local reply = 'gone'
  if own and (own ~= token or here ~= entry) then
    reply = 'fenced'
  elseif own then
    reply = 'ok'
    local job = { member = member, token = token, attempts = attempts }
    job.last, job.tags = tonumber(ARGV[at + 3]), ARGV[at + 4]
    keep(job, ARGV[at + 5])
  end
  replies[#replies + 1] = reply
end
return replies
