-- advertise: what a pass of the leader leaves in K:meta.
-- GIVES   advertise(meta, look, advertised, moved, promoted, ...): look is when the leader looks
--         next, advertised what stands there; promoted is the counter, and moved what is added to
--         it; what else is to be written with that comes after them
-- RULE    All in one command, and none where nothing has changed: most passes move one job.
local function advertise(meta, look, advertised, moved, promoted, ...)
  if moved > 0 then
    promoted = ('%.0f'):format((tonumber(promoted) or 0) + moved)
    redis.call('HSET', meta, 'wake', look, 'n.promoted', promoted, ...)
  elseif look ~= advertised then
    redis.call('HSET', meta, 'wake', look)
  end
end
