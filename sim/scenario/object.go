package scenario

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// setObject creates or replaces an object of a kind that only some plugins
// read. Each time it is another version.
func (p *play) setObject(kind object.Kind, block string) error {
	o := decode.Empty(kind)
	if err := yaml.UnmarshalStrict([]byte(block), o); err != nil {
		return err
	}
	p.tellObject(kind, o)
	return nil
}

func (p *play) tellObject(kind object.Kind, o metav1.Object) {
	if kind.Namespaced() && o.GetNamespace() == "" {
		o.SetNamespace(v1.NamespaceDefault)
	}
	p.made++
	o.SetResourceVersion(strconv.Itoa(p.made))
	p.wrote(o)
	p.world.Cluster.SetObject(decode.Object(o))
}
