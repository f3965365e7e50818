#!lua flags=allow-oom
-- declare: a queue enters the registry with its layout and its settings; who is first decides the
-- layout. So it is with the schema of the namespace.
-- USES  clock
-- KEYS  1 queues  2 wake
-- ARGV  1 now  2 queue  3 layout  4 schema  then per setting: setting, value
--       now ms, '' = server time
--       queue: its name, '' = none, only the schema, and settings that hold for queues that say
--       nothing; layout: partitions and generation, as JSON,
--       '' = only the settings of a queue that is there; schema: the number of the layout of keys
--       and values that the caller knows; setting: its name; with ? before it nothing is
--       written unless it has this value; value: '' = the setting goes
-- RETURN {layout that holds, schema that holds}: the caller's, or those of whoever was first. With
--        another schema than the caller's nothing is written, and the layout is ''; so it is
--        without a layout for a queue that is not there. For a name or a layout that nobody could
--        read nothing is written either, and the layout is 'bad'; where a setting has another
--        value it is 'changed'
-- The settings of a queue come with it, and stand before it: no leader may take the first jobs of
-- a broadcast queue for those of workers, and a queue that is refused leaves none behind. A few
-- bytes per queue, allowed at the memory limit as well: without its line nobody would drain the
-- queue. A registry without the number counts as schema 1. No queue can have the name of that
-- field, nor of a setting.
local queues, wake = KEYS[1], KEYS[2]
local _, queue, layout, schema = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local found = redis.call('HGET', queues, ':schema')
if found and found ~= schema then return { '', found } end
local known = queue ~= '' and redis.call('HGET', queues, queue)
if queue ~= '' and layout == '' and not known then return { '', schema } end
if queue ~= '' and layout ~= '' then
  local partitions = tonumber(layout:match('^{"partitions":(%d+),"generation":%d+}$')) or 0
  local named = queue:find('^[a-z0-9][a-z0-9._-]*$') and #queue <= 64
  if not named or partitions < 1 or partitions > 1024 then return { 'bad', schema } end
end
for at = 5, #ARGV, 2 do
  local setting = ARGV[at]:match('^%?(.+)$')
  local value = setting and redis.call('HGET', queues, queue .. ':' .. setting) or ''
  if setting and value ~= ARGV[at + 1] then return { 'changed', schema } end
end
redis.call('HSETNX', queues, ':schema', schema)
for at = 5, #ARGV, 2 do
  local isWritten = ARGV[at]:byte() ~= 63
  if isWritten and ARGV[at + 1] == '' then
    redis.call('HDEL', queues, queue .. ':' .. ARGV[at])
  elseif isWritten then
    redis.call('HSET', queues, queue .. ':' .. ARGV[at], ARGV[at + 1])
  end
end
if queue == '' then return { '', schema } end
if not known then
  redis.call('HSET', queues, queue, layout)
  redis.pcall('SPUBLISH', wake, 'queue ' .. queue)
end
return { known or layout, schema }
