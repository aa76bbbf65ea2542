package dynamicresources

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins/feature"
)

// bindingTimeout is kube-scheduler's default for how long a pod waits in PreBind for its devices.
// It also applies without the gate that lets profiles configure it: a claim that is being created
// for a pod is waited for as long.
const bindingTimeout = 10 * time.Minute

// WithDefaults returns a copy of the arguments with kube-scheduler's defaults for what they leave
// out. Nil arguments leave out all. A field whose feature gate is off gets no default.
func WithDefaults(args *configv1.DynamicResourcesArgs, f feature.Features) *configv1.DynamicResourcesArgs {
	args = cmp.Or(args.DeepCopy(), &configv1.DynamicResourcesArgs{})
	if f.DRASchedulerFilterTimeout {
		args.FilterTimeout = cmp.Or(args.FilterTimeout, &metav1.Duration{Duration: 10 * time.Second})
	}
	if f.DeviceBindingConditions() {
		args.BindingTimeout = cmp.Or(args.BindingTimeout, &metav1.Duration{Duration: bindingTimeout})
	}
	return args
}

// ValidateArgs returns the errors in the arguments, with fields named relative to path. A field
// that is set although its feature gate is off is an error.
func ValidateArgs(path *field.Path, args *configv1.DynamicResourcesArgs, f feature.Features) field.ErrorList {
	args = WithDefaults(args, f)
	var errs field.ErrorList
	if args.FilterTimeout != nil {
		at := path.Child("filterTimeout")
		switch {
		case !f.DRASchedulerFilterTimeout:
			errs = append(errs, field.Forbidden(at, "DRASchedulingFilterTimeout feature gate is disabled"))
		case args.FilterTimeout.Duration < 0:
			errs = append(errs, field.Invalid(at, args.FilterTimeout.Duration.String(), "must be zero or positive"))
		}
	}
	if args.BindingTimeout != nil {
		at := path.Child("bindingTimeout")
		switch {
		case !f.DeviceBindingConditions():
			errs = append(errs, field.Forbidden(at, "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"))
		case args.BindingTimeout.Duration < time.Second:
			errs = append(errs, field.Invalid(at, args.BindingTimeout.Duration.String(), "must be at least 1 second"))
		}
	}
	return errs
}
