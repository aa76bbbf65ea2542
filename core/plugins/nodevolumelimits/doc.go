// Package nodevolumelimits keeps a pod off nodes to which a CSI driver cannot
// attach its volumes besides those that are, or are to be, attached there:
// volumes of the pods on the node and VolumeAttachments, each counted once,
// against the driver's limit in the node's CSINode. In-tree volumes that a CSI
// driver serves count as that driver's.
package nodevolumelimits
