-- joining: whether a job may come into being as a member of a set, or take the place of one.
-- GIVES   joinReply(keys, call, job, before, reply): the reply to a job that would be made, or
--         would replace one: {member, text, due}; text and before are its tags, and those of the
--         job that it replaces; call: what the script remembers until its end
-- NEEDS   sets
-- RULE    A member needs its set, as long as the callback was not made, and what is in the braces
--         of its id is what is in those of the callback: the group of the set, or the set. So no
--         job of another group gets into it, whose partition may be the same. Nobody leaves a set
--         but by its end. A caller that names no tags could enter no member.
local function isOfSet(keys, call, name, member)
  call.braces = call.braces or {}
  if not call.braces[name] then
    local kept = redis.call('HGET', keys.jobs, '\0then\0' .. name) or ''
    call.braces[name] = kept:match('^%.%d+ j:({[^}]*})') or ''
  end
  local braces = call.braces[name]
  return member:sub(3, 2 + #braces) == braces
end

local function joinReply(keys, call, job, before, reply)
  local text, due = job.text, job.due
  local name, had = text and setIn(text), before and setIn(before)
  if reply == 'replaced' and had ~= name then return ('exists %.0f'):format(due) end
  if not name then return reply end
  -- @no-tags-key
  if not keys.tags then return 'bad-record' end
  local set = setOf(keys, name)
  local isOpen = set and set.sealed ~= '2' and isOfSet(keys, call, name, job.member)
  return isOpen and reply or 'no-set'
end
