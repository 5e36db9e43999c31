// Prints what Go knows about Kubernetes' messages and generated.proto does not: the order, names and presence of their
// fields in JSON. `cargo xtask messages` runs it together with a list of packages, in the module of control-plane.
//
// Output: `kind APIVERSION KIND MESSAGE SAYS-IT` (whether its JSON does, too), and `message NAME FORM`, followed by its fields, set in by a space:
// `NUMBER NAME TYPE FLAGS`, in their order in JSON. A NAME of `~` stands for all fields of TYPE, and a TYPE is one of
// generated.proto, `[T]` or `{T}`. Flags: `pointer`, `omitempty`, `omitzero`, or `-`.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	metabeta "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Types with a MarshalJSON of their own, and the form of its output.
var forms = map[string]string{
	"k8s.io.apimachinery.pkg.apis.meta.v1.Time":       "time",
	"k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime":  "microtime",
	"k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1":   "json",
	"k8s.io.apimachinery.pkg.api.resource.Quantity":   "quantity",
	"k8s.io.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
	"k8s.io.apimachinery.pkg.runtime.RawExtension":    "extension",
}

func init() {
	for _, version := range []string{"v1", "v1beta1"} {
		schemas := "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions." + version + "."
		forms[schemas+"JSON"] = "json"
		forms[schemas+"JSONSchemaPropsOrBool"] = "or-bool"
		forms[schemas+"JSONSchemaPropsOrArray"] = "or-array"
		forms[schemas+"JSONSchemaPropsOrStringArray"] = "or-array"
	}
}

// Fields as in generated.proto, for types whose Go fields differ.
var fields = map[string][]string{
	"time":      {"1 seconds int64 -", "2 nanos int32 -"},
	"microtime": {"1 seconds int64 -", "2 nanos int32 -"},
	"quantity":  {"1 string string -"},
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	protobuf  = reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
	out       = bufio.NewWriter(os.Stdout)
	wanted    []reflect.Type
	known     = map[reflect.Type]bool{}
)

func main() {
	defer out.Flush()
	scheme := runtime.NewScheme()
	for _, add := range append(packages, meta.AddMetaToScheme, metabeta.AddMetaToScheme) {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	var lines []string
	for kind, of := range scheme.AllKnownTypes() {
		group, version := kind.Group, kind.Version
		// Every group has the options of requests; one is enough.
		shared := strings.HasSuffix(of.PkgPath(), "/meta/v1") && group != "" && group != "meta.k8s.io"
		if version == runtime.APIVersionInternal || shared || !reflect.PointerTo(of).Implements(protobuf) {
			continue
		}
		if group == "" && version != "v1" {
			continue
		}
		// A watch event has no kind and apiVersion.
		says := "says-it"
		if _, typed := of.FieldByName("TypeMeta"); !typed {
			says = "says-nothing"
		}
		lines = append(lines, fmt.Sprintln("kind", kind.GroupVersion(), kind.Kind, name(of), says))
		want(of)
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Fprint(out, line)
	}
	for len(wanted) > 0 {
		next := wanted[0]
		wanted = wanted[1:]
		message(next)
	}
}

func want(of reflect.Type) {
	if !known[of] {
		known[of] = true
		wanted = append(wanted, of)
	}
}

func name(of reflect.Type) string {
	return strings.NewReplacer("/", ".", "-", "_").Replace(of.PkgPath()) + "." + of.Name()
}

func message(of reflect.Type) {
	form, special := forms[name(of)]
	if writes := of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler); writes != special {
		panic(fmt.Sprint(name(of), " writes itself as JSON: ", writes, ", is known: ", special))
	}
	if of.Kind() == reflect.Slice {
		fmt.Fprintln(out, "message", name(of), "list")
		fmt.Fprintln(out, " 1 items", "["+one(of.Elem())+"]", "-")
		return
	}
	if !special {
		form = "object"
	}
	fmt.Fprintln(out, "message", name(of), form)
	if lines, differ := fields[form]; differ {
		for _, line := range lines {
			fmt.Fprintln(out, " "+line)
		}
		return
	}
	for i := range of.NumField() {
		field(of, of.Field(i), special)
	}
}

func field(of reflect.Type, field reflect.StructField, special bool) {
	tag := strings.Split(field.Tag.Get("protobuf"), ",")
	names := strings.Split(field.Tag.Get("json"), ",")
	label, options := names[0], names[1:]
	if len(tag) < 3 {
		// The envelope has it, not the message.
		if field.Type.Name() == "TypeMeta" || label == "-" || special && field.Tag.Get("protobuf") == "-" {
			return
		}
		if special || !contains(options, "omitempty") {
			panic(fmt.Sprint(name(of), ".", field.Name, " is no part of the message"))
		}
		return
	}
	if field.Type.Name() == "TypeMeta" {
		panic(name(of) + " has a TypeMeta in its message")
	}
	var flags []string
	kind := field.Type
	if kind.Kind() == reflect.Pointer {
		flags = append(flags, "pointer")
		kind = kind.Elem()
	}
	for _, option := range options {
		switch option {
		case "omitempty", "omitzero":
			flags = append(flags, option)
		case "inline":
		default:
			panic(fmt.Sprint(name(of), ".", field.Name, ": ", option))
		}
	}
	if label == "" {
		switch {
		case special:
			label = strings.ToLower(field.Name[:1]) + field.Name[1:]
		case field.Anonymous || contains(options, "inline"):
			if kind.Kind() != reflect.Struct || len(flags) > 0 && flags[0] == "pointer" {
				panic(fmt.Sprint(name(of), ".", field.Name, " cannot be inlined"))
			}
			// encoding/json ignores `inline`: a field that is not embedded becomes an object under its Go name.
			if !field.Anonymous {
				panic(fmt.Sprint(name(of), ".", field.Name, " is not embedded"))
			}
			label = "~"
		default:
			label = field.Name
		}
	}
	if len(flags) == 0 {
		flags = []string{"-"}
	}
	fmt.Fprintln(out, "", tag[1], label, many(kind), strings.Join(flags, " "))
}

// Some tags have `rep` and `opt` wrong. A slice is a message if it has a message's methods.
func many(kind reflect.Type) string {
	switch {
	case kind.Kind() == reflect.Map:
		if kind.Key().Kind() != reflect.String {
			panic(kind.String())
		}
		return "{" + one(kind.Elem()) + "}"
	case kind.Kind() == reflect.Slice && kind.Elem().Kind() != reflect.Uint8 && !reflect.PointerTo(kind).Implements(protobuf):
		return "[" + one(kind.Elem()) + "]"
	default:
		return one(kind)
	}
}

func one(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Pointer:
		return one(kind.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64:
		return kind.Kind().String()
	case reflect.Int:
		return "int32"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		want(kind)
		return name(kind)
	case reflect.Struct:
		want(kind)
		return name(kind)
	}
	panic(kind.String())
}

func contains(options []string, option string) bool {
	for _, other := range options {
		if other == option {
			return true
		}
	}
	return false
}
