package charm

import (
	"bytes"
	"encoding/json"
)

// UnmarshalJSON reads a stored option. JSON has one kind of number, so that the default is
// converted to the option's type.
func (o *Option) UnmarshalJSON(data []byte) error {
	type stored Option // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode((*stored)(o)); err != nil || o.Default == nil {
		return err
	}
	value, err := o.coerce(o.Default)
	o.Default = value
	return err
}
