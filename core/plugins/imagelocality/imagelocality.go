package imagelocality

import (
	"math"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/index/images"
	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/plugins/names"
	"github.com/berth-scheduler/berth/core/resource"
	"github.com/berth-scheduler/berth/core/table"
)

// Bounds of the sum of the scaled sizes of a pod's images that a node has, in bytes.
const (
	least = 23 << 20   // scores 0, as less does
	most  = 1000 << 20 // times the number of the pod's images, scores 100, as more does
)

// New returns the plugin. Images are looked up by the names that nodes
// report, so Pod.Images must be written as those are.
func New() framework.Plugin {
	return framework.Plugin{
		Name:        names.ImageLocality,
		SignPlugin:  framework.SignPlugin{Locality: framework.NodeOnly, Sign: sign, Epoch: func(t *table.Table) uint64 { return images.Of(t).Revision() }},
		ScorePlugin: framework.ScorePlugin{Score: score},
	}
}

// sign appends the pod's image names to key.
func sign(key []byte, _ *table.Table, p *object.Pod) []byte {
	for _, image := range p.Images {
		key = match.AppendField(key, image)
	}
	return key
}

// score writes the score of each row, 0 to 100. It adds up the bytes of the pod's images on the
// node, each image scaled by the part of all nodes that have it: otherwise the first node to pull
// an image would draw all the pods that use it.
func score(in *framework.Input, rows []table.Row, out []int64) {
	clear(out)
	for _, name := range in.Pod.Images {
		image := images.Of(in.Table).Image(name)
		if image == nil {
			continue
		}
		bytes := scaled(image, in.Table.Live())
		for i, r := range rows {
			if image.On(r) {
				out[i] = resource.Add(out[i], bytes)
			}
		}
	}
	for i, bytes := range out {
		if out[i] = 0; bytes > least { // most nodes have no image
			out[i] = rate(bytes, len(in.Pod.Images))
		}
	}
}

// scaled returns the image's size in bytes times the part of all nodes that have it. nodes is the
// number of all nodes.
func scaled(image *images.Image, nodes int) int64 {
	spread := float64(image.Nodes()) / float64(nodes)
	bytes := float64(image.Bytes) * spread
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// rate returns the score, 0 to 100, of a node for a pod with that many images, if those that the
// node has come to the given bytes after scaling.
func rate(bytes int64, images int) int64 {
	full := int64(most) * int64(images)
	return 100 * (max(least, min(bytes, full)) - least) / (full - least)
}
