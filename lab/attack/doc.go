// Package attack attacks a live daemon and the tool with what stands around the
// scheduler: clients that never read, objects at the limits of the API, extenders,
// API servers and daemons that lie, odd files, a full disk. Each attack is a value of
// All. While it is played, and after it, the same bounds are checked: memory, the
// longest step of the scheduling loop, /livez, whether a small pod is still bound, what
// people without rights are answered, and which bytes the tool writes.
//
// An attack is bounded in count and time, stays on the loopback device, and ends by
// itself. A process that grows past a limit (killAt) is killed, so that a broken bound
// fails the attack and nothing else.
package attack
