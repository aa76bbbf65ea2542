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

// Sizes in bytes of a pod's images on a node, after scaling: least and less score 0;
// most, for each image of the pod, scores 100.
const (
	least = 23 << 20
	most  = 1000 << 20
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

// score adds up the bytes of the pod's images on each node, each image scaled
// by the part of all nodes that have it: otherwise the first node to pull an
// image would draw all the pods that use it.
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

// scaled returns the image's size in bytes times the part of all nodes that have it.
func scaled(image *images.Image, nodes int) int64 {
	spread := float64(image.Nodes()) / float64(nodes)
	bytes := float64(image.Bytes) * spread
	if bytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(bytes)
}

// rate returns the score, 0 to 100, of a pod with that many images of which the node
// has these scaled bytes.
func rate(bytes int64, images int) int64 {
	full := int64(most) * int64(images)
	return 100 * (max(least, min(bytes, full)) - least) / (full - least)
}
