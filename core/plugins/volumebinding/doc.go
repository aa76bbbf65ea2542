// Package volumebinding sees to the volumes behind a pod's claims. Those of
// bound claims keep the pod to the nodes that reach them. For claims that wait
// for their first consumer it finds, on each node, the smallest free volume
// that suits, or a class that can make one there. Reserve assumes the choice on
// the chosen node, PreBind writes it down, and the pod is bound when the volume
// controller has bound the claims.
package volumebinding
