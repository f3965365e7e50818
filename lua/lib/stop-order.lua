-- stop-order: the worker that runs a job hears at once that it is to stop.
-- GIVES   orderStop(meta, run, how): says on the channel stop which start is to end; how: a word
--         before that, see held
-- RULE    A worker that does not hear it learns it with its next extension. The channel is named
--         after meta, so that no script has a key more for it.
local function orderStop(meta, run, how)
  local stop = meta:sub(1, -5) .. 'stop'
  -- @order
  redis.pcall('SPUBLISH', stop, ('%s%s %s %s'):format(how or '', run.owner, run.entry, run.token))
end
