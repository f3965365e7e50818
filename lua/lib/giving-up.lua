-- giving-up: entries leave ready otherwise than by a completion, and whoever waits for the room
-- they leave is let through.
-- GIVES   giveUp(keys, state, now, micros, entries, members, unused, isOver): state is gates,
--         gate and paused of K:meta; unused: the members for which no handler has run, whose turns
--         of the rate are given back, or false; isOver: as leaveReady has it
-- NEEDS   gate, own, pausing, leaving, letting-through
-- RULE    The bell rings in the same call, so that nobody has to notice the room.
local function giveUp(keys, state, now, micros, entries, members, unused, isOver)
  local gate
  if state[1] then
    --@lazy
    gate = gateOf(state[1], state[2], now, micros)
  end
  if state[3] then
    --@lazy
    state[3] = pauseIn(state[3], state[1])
  end
  leaveReady(keys, gate, entries, members, isOver)
  if gate then
    --@lazy
    refundAll(keys, gate, unused or {})
    if not state[3] then
      -- @ring-bell
      ringBell(keys, gate)
    end
  end
end
