package object

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/match"
)

// PersistentVolumeClaim is what the scheduler reads of one claim.
type PersistentVolumeClaim struct {
	Meta
	Class      string // name of its storage class, "" for none
	VolumeName string // spec.volumeName
	// BindCompleted is set if the volume controller completed the binding (annotation
	// pv.kubernetes.io/bind-completed).
	BindCompleted bool
	Lost          bool // status.phase is Lost: its volume is gone
	Terminating   bool
	Sized         bool                            // it states how much storage it requests
	Bytes         int64                           // the storage requested
	Modes         []v1.PersistentVolumeAccessMode // spec.accessModes
	VolumeMode    v1.PersistentVolumeMode         // never empty
	Attributes    string                          // spec.volumeAttributesClassName
	// Selector selects volumes by labels, nil selects all; SelectorError is set if the claim's
	// selector does not parse.
	Selector      labels.Selector
	SelectorError error
	// Owner is the UID of the controlling owner: the pod, for the claim of a generic
	// ephemeral volume.
	Owner types.UID
	// SelectedNode is the node for which a volume is to be provisioned (annotation
	// volume.kubernetes.io/selected-node), "" for none.
	SelectedNode string
}

// Bound reports whether the claim names a volume and the binding is completed.
func (c *PersistentVolumeClaim) Bound() bool { return c.VolumeName != "" && c.BindCompleted }

// PersistentVolume is what the scheduler reads of one volume.
type PersistentVolume struct {
	Meta
	Labels      map[string]string
	Class       string // name of its storage class, "" for none
	Available   bool   // status.phase is Available
	Terminating bool
	Bytes       int64 // its capacity
	Modes       []v1.PersistentVolumeAccessMode
	VolumeMode  v1.PersistentVolumeMode // never empty
	Attributes  string                  // spec.volumeAttributesClassName
	Claim       *ClaimReference         // spec.claimRef; nil: reserved for no claim
	// ByController is set if the volume was bound by a controller, not by a user
	// (annotation pv.kubernetes.io/bound-by-controller).
	ByController bool
	Nodes        *match.NodeSelector // required node affinity; nil matches every node
	// Pin is a label that Nodes requires with one of some values, by which volumes for a
	// node are found fast; nil if there is none.
	Pin    *LabelPin
	Source VolumeSource
	// Migrated is an in-tree volume as the CSI driver that replaces its plugin sees it; nil
	// for other volumes.
	Migrated *MigratedVolume
}

// CompareSize compares volumes by size, then by UID, then by name: below 0 if v comes first,
// the smaller one, above 0 if o does.
func (v *PersistentVolume) CompareSize(o *PersistentVolume) int {
	return cmp.Or(cmp.Compare(v.Bytes, o.Bytes), cmp.Compare(v.UID, o.UID), cmp.Compare(v.Name, o.Name))
}

// LabelPin is a node label and the values of it that are accepted.
type LabelPin struct {
	Key    string
	Values []string
}

// ClaimReference names the claim for which a volume is reserved; UID "" means any claim of
// that name.
type ClaimReference struct {
	Namespace, Name string
	UID             types.UID
}

// Keeps reports whether the volume is reserved for the claim, bound to it or not.
func (v *PersistentVolume) Keeps(c *PersistentVolumeClaim) bool {
	r := v.Claim
	return r != nil && r.Namespace == c.Namespace && r.Name == c.Name && (r.UID == "" || r.UID == c.UID)
}

// VolumeSource identifies a CSI volume by its driver and the driver's handle for it; both
// are "" for other volumes.
type VolumeSource struct{ Driver, Handle string }

// Attachable reports whether it is a CSI volume, which counts against the driver's limit on
// a node.
func (s VolumeSource) Attachable() bool { return s.Driver != "" && s.Handle != "" }

// MigratedVolume is an in-tree volume translated for the CSI driver that replaces its
// plugin.
type MigratedVolume struct {
	Plugin string // the in-tree plugin, such as kubernetes.io/aws-ebs
	Source VolumeSource
	Nodes  *match.NodeSelector // node affinity after translation
	Error  error               // why it cannot be translated
}

// StorageClass is what the scheduler reads of one storage class.
type StorageClass struct {
	Meta
	Provisioner string
	// MigratedTo is the CSI driver that replaces an in-tree provisioner, "" for other
	// classes.
	MigratedTo string
	// HasBindingMode is set if the class states a volumeBindingMode, WaitForFirstConsumer if
	// that is WaitForFirstConsumer.
	HasBindingMode, WaitForFirstConsumer bool
	// Topologies are spec.allowedTopologies: where volumes can be provisioned; empty means
	// everywhere.
	Topologies []v1.TopologySelectorTerm
}

// CSINode holds the CSI drivers of a node and their limits. It has the node's name.
type CSINode struct {
	Meta
	Drivers []CSINodeDriver
	// Migrated is the annotation that lists the in-tree plugins which CSI drivers replace
	// on the node.
	Migrated string
}

// ForNode returns a copy of the CSINode for another node, with that node's name and without
// UID.
func (c *CSINode) ForNode(name string) *CSINode {
	other := *c
	other.Name, other.UID = name, ""
	return &other
}

// Has reports whether the CSI driver is installed on the node.
func (c *CSINode) Has(driver string) bool {
	return slices.ContainsFunc(c.Drivers, func(d CSINodeDriver) bool { return d.Name == driver })
}

// TopologyKeys returns the driver's topology keys on the node: labels that tell which nodes
// can reach a volume that is provisioned for this one; nil if the driver is not on the
// node.
func (c *CSINode) TopologyKeys(driver string) []string {
	if i := slices.IndexFunc(c.Drivers, func(d CSINodeDriver) bool { return d.Name == driver }); i >= 0 {
		return c.Drivers[i].TopologyKeys
	}
	return nil
}

// CSINodeDriver is a CSI driver on a node. If Limited is set, at most Limit of its volumes
// can be attached there. TopologyKeys are the labels that tell which nodes can reach a
// volume of the driver.
type CSINodeDriver struct {
	Name         string
	Limited      bool
	Limit        int32
	TopologyKeys []string
}

// CSIDriver is what the scheduler reads of one CSI driver.
type CSIDriver struct {
	Meta
	StorageCapacity bool // it publishes CSIStorageCapacities, which are to be checked
	// PreventIfMissing is set if pods with its volumes must not be scheduled to nodes
	// without the driver.
	PreventIfMissing bool
}

// CSIStorageCapacity is how much can be provisioned of a storage class on some nodes.
type CSIStorageCapacity struct {
	Meta
	Class string
	// Bytes is the size of the largest volume that can be provisioned (maximumVolumeSize, else
	// capacity). Known is false if the object states neither: no volume can be provisioned
	// then.
	Bytes int64
	Known bool
	// Free is the available capacity in bytes, 0 if it is not known.
	Free  int64
	Nodes labels.Selector // the nodes that can reach the storage, by labels; nil: no node
}

// IndexKey returns the name of the storage class, under which the table lists the capacity.
func (c *CSIStorageCapacity) IndexKey() string { return c.Class }

// VolumeAttachment is a volume that is attached to a node, or is to be.
type VolumeAttachment struct {
	Meta
	Attacher string // the CSI driver
	Node     string
	Volume   string // the PersistentVolume's name, "" for an inline volume
}

// IndexKey returns the name of the node that the volume is attached to, under which the
// table lists the attachment.
func (a *VolumeAttachment) IndexKey() string { return a.Node }
