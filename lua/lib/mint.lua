-- mint: the fencing token of a start.
-- GIVES   mint(keys, call): a text. `call` has token, the last one, and count, the most starts that
--         the script may make
-- USED BY  serve, start
-- RULE    Tokens of a partition only grow. What may be minted is written down before the first is.
local function mint(keys, call)
  if not call.isMinted then
    redis.call('HSET', keys.meta, 'token', ('%.0f'):format(call.token + call.count))
  end
  call.token, call.isMinted = call.token + 1, true
  return ('%.0f'):format(call.token)
end
