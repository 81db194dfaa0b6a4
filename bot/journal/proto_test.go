package journal
import ("testing";"fmt";"time";"sync";"crypto/rand";"context";"strconv"
"github.com/nats-io/nats-server/v2/server"
"github.com/nats-io/nats.go"
"github.com/nats-io/nats.go/jetstream")
func TestProto(t *testing.T){
 o:=&server.Options{ServerName:"kg",JetStream:true,StoreDir:t.TempDir(),DontListen:true,SyncAlways:true,NoSigs:true,MaxPayload:32<<20,MaxPending:128<<20}
 s,err:=server.NewServer(o); if err!=nil{t.Fatal(err)}
 s.Start(); defer s.Shutdown(); if !s.ReadyForConnections(5*time.Second){t.Fatal("not ready")}
 nc,err:=nats.Connect("",nats.InProcessServer(s)); if err!=nil{t.Fatal(err)}
 js,_:=jetstream.New(nc); ctx:=context.Background()
 _,err=js.CreateStream(ctx,jetstream.StreamConfig{Name:"D",Subjects:[]string{"d.>"},AllowAtomicPublish:true,Storage:jetstream.FileStorage})
 if err!=nil{t.Fatal(err)}
 body:=make([]byte,20<<10); rand.Read(body)
 n:=0
 for _,c:=range []int{1,16,64}{
  var wg sync.WaitGroup; t0:=time.Now(); const per=2000
  for g:=range c{ wg.Add(1); go func(){defer wg.Done(); for i:=range per/c{ m:=nats.NewMsg(fmt.Sprintf("d.x.%d-%d-%d",c,g,i)); m.Data=body; m.Header.Set("Nats-Expected-Last-Subject-Sequence","0"); if _,err:=js.PublishMsg(ctx,m);err!=nil{t.Error(err)}}}()}
  wg.Wait(); fmt.Printf("plain %d callers: %.0f/s\n",c,float64(per/c*c)/time.Since(t0).Seconds())
 }
 for _,k:=range []int{1,2,4,16,64,200}{
  t0:=time.Now(); tot:=0
  for b:=range max(6,1500/k){
   id:="b"+strconv.Itoa(k)+"-"+strconv.Itoa(b)
   for i:=range k{ n++; tot++
     m:=nats.NewMsg(fmt.Sprintf("d.y.%d",n)); m.Data=body; m.Header.Set("Nats-Batch-Id",id); m.Header.Set("Nats-Batch-Sequence",strconv.Itoa(i+1)); m.Header.Set("Nats-Expected-Last-Subject-Sequence","0")
     if i==k-1 { m.Header.Set("Nats-Batch-Commit","1"); r,err:=nc.RequestMsg(m,5*time.Second); if err!=nil{t.Fatal(err)}; if b==0{fmt.Println(string(r.Data))} } else { nc.PublishMsg(m) }
   }
  }
  d:=time.Since(t0); fmt.Printf("batch %d: %.0f/s, %v a batch\n",k,float64(tot)/d.Seconds(), d/time.Duration(max(6,1500/k)))
 }
}
