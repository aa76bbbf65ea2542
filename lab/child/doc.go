// Package child lets a program host the lab's processes: etcd, kube-apiserver,
// kube-controller-manager, kwok and kube-scheduler. Each is the real program,
// linked as a Go module. The lab starts its own executable again with the name
// of a component as argument. RunIfAsked, called first in main or TestMain,
// sees the argument and becomes the component. Linking this package makes a
// binary large; package cluster does not need it.
package child
