/** Starts Hudi's timeline service with the flags given, and stays: the service's own threads are daemons. */
public class TimelineServiceLauncher {
    public static void main(String[] flags) throws Exception {
        org.apache.hudi.timeline.service.TimelineService.main(flags);
        Thread.currentThread().join();
    }
}
