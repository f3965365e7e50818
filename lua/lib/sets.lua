-- sets: jobs with one tag =set:<name>, and a callback that is made when the last of them is over.
-- GIVES   setIn(text): the set in the tags of a header, or nil; setOf(keys, name): what is known of
--         it: {sealed, made, d, x, c, e}, or nil; keepSet(keys, name, set, ...): writes that, with
--         other fields of jobs in the same step; hasOpen(tags, name): whether a member is left;
--         forgetSet(keys, name)
-- RULE    A set is two fields of jobs whose names begin with a zero byte, which no member does: set
--         says how far it is, then says what the callback will be. Both begin like a tombstone, so
--         whoever looks for records passes them over. Sealed is 0, 1, or 2: the callback has been
--         made. Which members are open the index of tags says; its entries =sets say which sets
--         there are: entered first, taken out last.
local function setIn(text)
  local from = (',' .. text):find(', set:', 1, true)
  return from and text:match('^ set:([^,]+)', from)
end

local function setOf(keys, name)
  local text = redis.call('HGET', keys.jobs, '\0set\0' .. name) or ''
  local sealed, made, d, x, c, e = text:match('^%.(%d) (%d+) (%d+)%.(%d+)%.(%d+)%.(%d+)$')
  return sealed and { sealed = sealed, made = made, d = d, x = x, c = c, e = e }
end

local function keepSet(keys, name, set, ...)
  local text = ('.%s %s %d.%d.%d.%d'):format(set.sealed, set.made, set.d, set.x, set.c, set.e)
  redis.call('HSET', keys.jobs, '\0set\0' .. name, text, ...)
end

local function hasOpen(tags, name)
  local of = '=set:' .. name
  return redis.call('ZRANGE', tags, '[' .. of .. '\0', '(' .. of .. '\1', 'BYLEX', 'LIMIT', 0, 1)[1]
end

local function forgetSet(keys, name)
  redis.call('HDEL', keys.jobs, '\0set\0' .. name, '\0then\0' .. name)
  redis.call('ZREM', keys.tags, '=sets\0' .. name)
end
