package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berth-scheduler/berth/core/object"
)

// expectElasticQuota: what its status says is used.
func (p *play) expectElasticQuota(words []string, text string) error {
	if len(words) != 1 {
		return errors.New("want an ElasticQuota")
	}
	namespace, name, _ := strings.Cut(key(words[0]), "/")
	q, _ := p.world.Cluster.Object(object.ElasticQuotas, namespace, name).(*object.ElasticQuota)
	if q == nil {
		return errors.New("it does not exist")
	}
	if got := q.Used.String(); got != text {
		return fmt.Errorf("its status says %q", got)
	}
	return nil
}
