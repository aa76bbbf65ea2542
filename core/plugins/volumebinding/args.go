package volumebinding

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins/feature"
	"github.com/berth-scheduler/berth/core/shape"
)

// maxSeconds is the longest time that a time.Duration holds, in seconds.
const maxSeconds = math.MaxInt64 / int64(time.Second)

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they
// leave out. Nil arguments leave out all.
func WithDefaults(args *configv1.VolumeBindingArgs, f feature.Features) *configv1.VolumeBindingArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.VolumeBindingArgs{})
	args.BindTimeoutSeconds = cmp.Or(args.BindTimeoutSeconds, new(int64(600)))
	if f.StorageCapacityScoring && len(args.Shape) == 0 {
		args.Shape = []configv1.UtilizationShapePoint{{Utilization: 0, Score: shape.MaxPoint}, {Utilization: 100, Score: 0}} // prefers room that is left
	}
	return args
}

// ValidateArgs returns the errors in the arguments, with fields named relative to path.
func ValidateArgs(path *field.Path, args *configv1.VolumeBindingArgs, f feature.Features) field.ErrorList {
	args = WithDefaults(args, f)
	var errs field.ErrorList
	seconds, at := *args.BindTimeoutSeconds, path.Child("bindTimeoutSeconds")
	if seconds < 0 {
		errs = append(errs, field.Invalid(at, seconds, "invalid BindTimeoutSeconds, should not be a negative value"))
	}
	if seconds > maxSeconds {
		errs = append(errs, field.Invalid(at, seconds, fmt.Sprintf("must not be greater than %d", maxSeconds)))
	}
	switch {
	case !f.StorageCapacityScoring && args.Shape != nil:
		errs = append(errs, field.Invalid(path.Child("shape"), field.OmitValueType{}, "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"))
	case f.StorageCapacityScoring && args.Shape != nil:
		errs = append(errs, shape.Validate(path.Child("shape"), args.Shape)...)
	}
	return errs
}
