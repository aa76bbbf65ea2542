// Package child makes a program able to host the lab's processes: etcd,
// kube-apiserver, kube-controller-manager, kwok and kube-scheduler, each the
// real one, linked as a Go module. The lab starts its own executable again with
// the name of a component as argument; RunIfAsked, first thing in main or
// TestMain, sees that and becomes the component. Linking this package is what
// makes a binary large; package cluster alone does not need it.
package child
