#include <mpi.h>
#include <stdio.h>
static int copy(MPI_Comm c,int k,void*e,void*in,void*out,int*flag){*(void**)out=(char*)in+1;*flag=c==MPI_COMM_WORLD;return 0;}
static void mx(void*a,void*b,int*n,MPI_Datatype*t){int i;for(i=0;i<*n;i++)((int*)b)[i]+=((int*)a)[i]*2;if(*t!=MPI_INT)printf("bad type\n");}
int main(int argc, char **argv)
{
    int rank, size, token = 0, k, v=5, flag, len; void*p; MPI_Status st; MPI_Request r[2]; MPI_Comm d; MPI_Op op; char n[MPI_MAX_OBJECT_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Irecv(&token,1,MPI_INT,MPI_ANY_SOURCE,MPI_ANY_TAG,MPI_COMM_WORLD,r);
    MPI_Isend(&rank,1,MPI_INT,(rank+1)%size,7,MPI_COMM_WORLD,r+1);
    MPI_Status ss[2]; MPI_Waitall(2,r,ss);
    MPI_Get_count(ss,MPI_INT,&len);
    printf("rank %d got %d from %d tag %d count %d null %d\n", rank, token, ss[0].MPI_SOURCE, ss[0].MPI_TAG,len, r[0]==MPI_REQUEST_NULL);
    MPI_Recv(&v,1,MPI_INT,MPI_PROC_NULL,0,MPI_COMM_WORLD,&st); printf("pn %d %d\n",st.MPI_SOURCE==MPI_PROC_NULL,st.MPI_TAG==MPI_ANY_TAG);
    MPI_Comm_create_keyval(copy,MPI_COMM_NULL_DELETE_FN,&k,0);
    MPI_Comm_set_attr(MPI_COMM_WORLD,k,(void*)41);
    MPI_Comm_dup(MPI_COMM_WORLD,&d); MPI_Comm_get_attr(d,k,&p,&flag); printf("attr %d %ld\n",flag,(long)p);
    MPI_Comm_get_attr(d,MPI_TAG_UB,&p,&flag); printf("ub %d %d\n",flag,*(int*)p);
    MPI_Op_create(mx,1,&op); v=rank+1; MPI_Allreduce(MPI_IN_PLACE,&v,1,MPI_INT,op,d); printf("op %d\n",v);
    MPI_Comm_set_errhandler(d,MPI_ERRORS_RETURN); len=MPI_Send(&v,1,MPI_INT,77,0,d); MPI_Error_class(len,&flag); printf("err %d\n",flag==MPI_ERR_RANK);
    MPI_Datatype t,o[1]; int ni,na,nd,c,in[9]; MPI_Type_create_subarray(1,(int[]){4},(int[]){2},(int[]){1},MPI_ORDER_C,MPI_INT,&t);
    MPI_Type_get_envelope(t,&ni,&na,&nd,&c); MPI_Type_get_contents(t,ni,na,nd,in,(MPI_Aint*)0,o); printf("sub %d %d %d\n",c==MPI_COMBINER_SUBARRAY,in[4]==MPI_ORDER_C,o[0]==MPI_INT);
    MPI_Comm_get_name(MPI_COMM_WORLD,n,&len); printf("%s %d\n",n,len);
    MPI_Comm_compare(d,MPI_COMM_WORLD,&c); printf("cmp %d\n",c==MPI_CONGRUENT);
    MPI_Comm_free(&d); printf("null %d\n",d==MPI_COMM_NULL);
    double w=MPI_Wtime(); printf("w %d\n",w>0);
    MPI_Finalize();
    return 0;
}
