-- tombstone: what is left of a job that is over, in the place of its record.
-- GIVES   isTombstone(value); tombstoneOf(jobs, member): the tombstone if there is one, and the
--         length of what there is; settledIn(jobs, member): its outcome letter and finishing token;
--         tombstoneText(...); firstMark(record): the mark that stands in its header, or nil;
--         markOf(record): what a tombstone keeps of a record, the asked due time and the digest of
--         the call that made the job; markIn(jobs, member): the same of what is there, and what is
--         there
-- RULE    A record is never read to find out that it is none: a value of more than 300 bytes is
--         no tombstone. A record that was edited, or has headers of a job, has its mark in
--         the letter m.
local function isTombstone(value)
  return value and value:byte() == 46
end

local function tombstoneOf(jobs, member)
  local length = redis.call('HSTRLEN', jobs, member)
  -- @nothing-there
  local value = length > 0 and length <= 300 and redis.call('HGET', jobs, member)
  return value and value:byte() == 46 and value or nil, length
end

local function settledIn(jobs, member)
  local value = redis.call('HSTRLEN', jobs, member) <= 300 and redis.call('HGET', jobs, member)
  return (value or ''):match('^%.(%l)%w+ %S+ (%d+)')
end

local function tombstoneText(outcome, mark, token, attempts, deadLetter)
  return '.' .. outcome .. mark .. ' ' .. token .. ' ' .. attempts .. ' ' .. (deadLetter or '-')
end

local function askedOf(record)
  return record:match('^%d(%w+)') or '0'
end

local function digestOf(record)
  return redis.sha1hex(record):sub(1, 16)
end

local function firstMark(record)
  -- As with tags: few records have been edited.
  local edited = record:find(';m=', 1, true) and record or ''
  local asked, digest = edited:match('^1%w+[^|]-;m=(%w+)%.(%x+)')
  return asked and asked .. ' ' .. digest
end

local function markOf(record)
  return firstMark(record) or askedOf(record) .. ' ' .. digestOf(record)
end

local function markIn(jobs, member)
  local value = redis.call('HGET', jobs, member) or ''
  -- A call that was cut off may have left the tombstone.
  return value:match('^%.%l(%w+ %S+)') or markOf(value), value
end
