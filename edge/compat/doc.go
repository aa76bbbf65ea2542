// Package compat hosts plugins that are written against
// k8s.io/kube-scheduler/framework, the contract of kube-scheduler. It turns such a
// plugin into one of core/framework.
//
// # One attempt
//
// Here is what happens for a pod under a profile with a hosted Filter and a hosted
// Permit:
//
//	engine.decide
//	  | Host.Begin      a cycle: an empty CycleState, the snapshot of now (snapshot.go)
//	  | PreFilter       call (call.go): the plugin runs on a goroutine of its own, and
//	  |                 the loop waits, no longer than the plugin timeout
//	  | Filter          calls for nodes that the native filters let pass, those with the
//	  |                 best scores first, until the choice is proven
//	  v
//	machine.assume
//	  | Reserve, Permit calls, too; Permit answers Wait
//	  v
//	waitOnPermit        Handle.GetWaitingPod(uid).Allow, from any goroutine, posts
//	  |                 machine.PermitReply
//	  v
//	PreBind, Bind, PostBind
//	                    effects: they run outside of the loop (binding.go)
//
// # What plugins see
//
// A plugin never touches what the loop owns. NodeInfo and PodInfo are views of a
// snapshot: immutable values, of which only those of changed nodes are made anew
// (snapshot.go). Where preemption or nominated pods change a node for a try, the
// plugin gets a copy of the node and of its state, kept up by AddPod and RemovePod
// (try.go). Handle's questions about the queue or the waiting pods are answered on
// the loop: between two steps, or while the loop waits for a plugin (ask in call.go).
//
// # What goes wrong
//
// A panic is an error of the pod's attempt, and so are a call that takes too long, a
// score out of range and a node that does not exist. A goroutine that hangs is left
// behind; the pod is refused until it returns, and all pods once there are many.
package compat
