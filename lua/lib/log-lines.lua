-- log-lines: what handlers said of their jobs, as the script log keeps it, and how it goes.
-- GIVES   dropLines(logs, members): nothing is kept of these jobs; linesToDead(logs, member,
--         deadLetter): the lines stay with the dead letter; linesFromDead(logs, member,
--         deadLetter): its job has them again; dropDeadLines(logs, ids): these dead letters go
-- RULE    logs is nil in a partition in which no handler has ever said a line: who uses none of it
--         pays nothing. The lines of a job stand under its member, as long as it lives or its
--         tombstone is there; those of a dead letter under a zero byte and its id. They go before
--         what they belong to, and move after the dead letter was added: a call that was cut off
--         leaves no line that belongs to nothing.
local function dropLines(logs, members)
  if logs and #members > 0 then
    redis.call('HDEL', logs, unpack(members))
  end
end

local function linesToDead(logs, member, deadLetter)
  local text = logs and deadLetter ~= '-' and redis.call('HGET', logs, member)
  if text then
    redis.call('HSET', logs, '\0' .. deadLetter, text)
    redis.call('HDEL', logs, member)
  end
end

local function linesFromDead(logs, member, deadLetter)
  local text = logs and redis.call('HGET', logs, '\0' .. deadLetter)
  if text then
    redis.call('HSET', logs, member, text)
  end
end

local function dropDeadLines(logs, ids)
  local fields = {}
  for index, id in ipairs(ids) do
    fields[index] = '\0' .. id
  end
  dropLines(logs, fields)
end
