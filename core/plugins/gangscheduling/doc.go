// Package gangscheduling is the plugin GangScheduling: no pod of a gang is tried
// before MinCount of them are there, and none is bound before MinCount have a node. A gang is
// the pods that name a PodGroup with a gang policy. The machine tries the pods of any group
// together (the gate GenericWorkload); this plugin says when they are enough.
package gangscheduling
