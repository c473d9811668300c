// Package mqtt runs github.com/eclipse/paho.mqtt.golang and the broker github.com/mochi-mqtt/server over a simulated
// network: what becomes of messages of QoS 0 and 1 when acknowledgements are lost, and when a subscriber's power is.
// The broker takes a listener, and the client a function that dials:
//
//	listener, err := network.Host("broker").Listen("tcp", ":1883")
//	broker := mqtt.New(nil)
//	err = broker.AddListener(listeners.NewNet("tcp", listener))
//	err = broker.Serve() // returns at once; broker.Close() at the end
//	dial := func(uri *url.URL, _ paho.ClientOptions) (net.Conn, error) { return network.Host("client").Dial("tcp", uri.Host) }
//	options.AddBroker("tcp://broker:1883").SetCustomOpenConnectionFn(dial)
package mqtt
