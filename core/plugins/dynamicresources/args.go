package dynamicresources

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/berth-scheduler/berth/core/plugins/feature"
)

// ValidateArgs says what is wrong with the arguments that stand at the path. A
// field that has no effect because its gate is off is wrong.
func ValidateArgs(path *field.Path, args *configv1.DynamicResourcesArgs, f feature.Features) field.ErrorList {
	if args == nil {
		return nil
	}
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
